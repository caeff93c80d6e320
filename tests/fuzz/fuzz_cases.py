"""Cases for the fuzzing tests: an estimator, parameters and data, all drawn from one seed."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from sklearn.utils._param_validation import generate_invalid_param_val, make_constraint

import polyspan
from polyspan import baselines

INF = float("inf")
LINEAR = {
    "n_subspaces": (1, 2, 3),
    "subspace_dim": (0, 1, 2, 3),
    "lam": (1e-3, 4.0, 1e3, INF),
    "init": ("anneal", "random"),
    "center": (True, False),
    "affine": (True, False),
    "residual": ("plain", "loo"),
    "n_init": (1, 2, "auto"),
    "anneal_steps": (3,),
    "tol": (0.0, 1e-6, 0.1),
    "max_iter": (1, 10),
}
KERNEL = {
    "kernel": ("rbf", "poly", "linear", "cosine"),
    "gamma": (None, 1e-3, 1.0, 100.0),
    "degree": (1, 2, 3),
    "coef0": (0.0, 1.0),
}
GRAPH = {
    "n_subspaces": (1, 2, 3, None),
    "subspace_dim": (1, 2),
    "assign_labels": ("kmeans", "cluster_qr"),
    "center": (True, False),
}
#: Values that a user may give; every case takes some of them. What is cheap is always set.
SPACES = {
    polyspan.MiCUSaL: LINEAR | {"solver": ("power", "exact")},
    polyspan.RobustMiCUSaL: LINEAR
    | {"solver": ("mm", "exact", "grouse"), "fill_prior": (0.0, 0.02, 1.0), "n_sweeps": (2,)},
    polyspan.AdaptiveMiCUSaL: {
        "max_subspaces": (1, 2, 4), "max_dim": (1, 2, 3), "lam": (0.1, 4.0), "k1": (2, 6),
        "merge_threshold": (0.01, 0.5), "n_init": (1, 2), "max_iter": (10,),
    },
    polyspan.MCKUSaL: KERNEL
    | {
        "n_subspaces": (1, 2, 3), "subspace_dim": (1, 2), "lam": (0.1, 4.0, INF),
        "init": ("spectral", "gkiop"), "residual": ("plain", "loo"), "low_rank": (None, 5),
        "n_init": (1, 2), "max_iter": (5,), "n_neighbors": (1, 3, 10),
        "preimage": ("closed_form", "fixed_point"),
    },
    polyspan.RobustMCKUSaL: KERNEL
    | {
        "kernel": ("rbf", "poly", "linear"), "n_subspaces": (1, 2), "subspace_dim": (1, 2),
        "lam": (0.1, 4.0), "n_init": (1,), "max_iter": (5,), "delta_min": (1e-6, 0.1),
    },
    polyspan.SubspaceMixture: {
        "n_subspaces": (1, 2, 3), "subspace_dim": (0, 1, 2), "closeness": (0.0, 1.0),
        "affine": (True, False), "center": (True, False), "noise": ("subspace", "shared", 0.1),
        "outliers": (False, True, 0.1), "n_init": (1, 2), "max_iter": (10,), "anneal_steps": (3,),
    },
    polyspan.SubspaceImputer: {
        "n_subspaces": ("auto", 1, 2), "subspace_dim": ("auto", 1, 2), "n_fits": (1,),
        "method": ("auto", "subspaces"),
        "add_indicator": (True, False), "keep_empty_features": (True, False),
    },
    polyspan.SubspaceOutlierDetector: {
        "contamination": ("auto", 0.1, 0.5), "standardize": ("auto", True, False),
    },
    polyspan.SubspaceClustering: {
        "n_clusters": (1, 2, 3, None), "max_clusters": (2, 4), "graphs": ("all", "sparse"),
        "close_subspaces": (False,), "extra_members": (None, ("least_squares",)),
    },
    baselines.KSubspaces: {name: LINEAR[name] for name in LINEAR if name != "lam"},
    baselines.GROUSE: {
        "subspace_dim": (1, 2), "step_size": ("greedy", 0.1, 10.0), "n_sweeps": (3,),
        "center": (True, False),
    },
    baselines.KGROUSE: {
        "n_subspaces": (1, 2), "subspace_dim": (1, 2), "n_sweeps": (3,), "n_init": (1,),
        "max_iter": (2,), "step_size": (0.1, 1.5),
    },
    baselines.BlockSparseDictionary: {
        "n_subspaces": (1, 2, 3), "subspace_dim": (1, 2), "n_blocks": (1, 2), "n_init": (1,),
        "max_iter": (5,),
    },
    baselines.KernelKMeans: KERNEL | {"n_clusters": (1, 2, 3), "n_init": (1,)},
    baselines.KernelPCADenoiser: KERNEL | {"subspace_dim": (1, 2)},
    baselines.RobustKernelPCA: KERNEL
    | {"kernel": ("rbf", "poly", "linear"), "subspace_dim": (1, 2)},
    baselines.SparseSubspaceClustering: GRAPH
    | {
        "algorithm": ("lasso", "omp"), "alpha": (5.0, 20.0, 1000.0), "affine": (True, False),
        "outliers": (True, False), "n_nonzero": (1, 5),
    },
    baselines.RobustSparseSubspaceClustering: GRAPH | {"lam": (None, 0.1, "two-step")},
    baselines.ThresholdingSubspaceClustering: GRAPH | {"q": (None, 1, 3)},
    baselines.ElasticNetSubspaceClustering: GRAPH
    | {
        "gamma": (1.0, 50.0, 1e4), "l1_ratio": (0.1, 0.9, 1.0), "nonnegative": (True, False),
        "n_exemplars": (None, 2, 10),
    },
    baselines.LeastSquaresSubspaceClustering: GRAPH
    | {
        "alpha": (1e-6, 0.1, 1e3), "power": (1.0, 4.0), "q": (None, 1, 3),
        "normalize": (True, False),
    },
    baselines.EnsembleKSubspaces: GRAPH
    | {"n_runs": (5,), "n_iter": (0, 3), "q": (None, 1, 3)},
    baselines.RobustShapeInteraction: GRAPH
    | {"ranks": (None, (1, 2), (50,)), "power": (1.0, 4.0), "q": (None, 1, 3)},
}  # fmt: skip
SHAPES = ("plain", "union", "constant", "zeros", "duplicates", "low rank", "one hot", "integers")
SCALES = (1.0,) * 8 + (1e-3, 1e3, 1e-150, 1e150, 1e-300, 1e300, "rows", "columns")
CONTAINERS = (
    *("array",) * 8, "fortran", "read-only", "float32", "float16", "integers", "list", "strided",
    "masked", "sparse", "pandas", "nullable", "twice a name", "text", "polars", "one dimension",
    "three dimensions", "complex", "booleans", "objects",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One call to make, and what is wrong with it, if anything."""

    seed: int
    model: object
    X: object
    described: str
    wrong_parameter: str | None


def draw_case(seed):
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    cls = list(SPACES)[rng.integers(len(SPACES))]
    space = SPACES[cls]
    options = {name: pick(rng, values) for name, values in space.items() if rng.random() < 0.6}
    options |= {name: values[0] for name, values in space.items() if len(values) == 1}
    if "random_state" in cls().get_params():
        options["random_state"] = 0
    wrong = None
    if rng.random() < 0.1:
        wrong = pick(rng, sorted(cls._parameter_constraints))
        bad = invalid_value(cls, wrong)
        wrong = None if bad is None else wrong
        options |= {} if bad is None else {wrong: bad[0]}
    X, said = draw_data(rng, takes_missing=cls().__sklearn_tags__().input_tags.allow_nan)
    told = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return Case(seed, cls(**options), X, f"{cls.__name__}({told}) on {said}", wrong)


def pick(rng, values):
    return values[rng.integers(len(values))]


def invalid_value(cls, name):
    """Return a value that scikit-learn's constraints of a parameter refuse, in a tuple."""
    for constraint in cls._parameter_constraints[name]:
        try:
            value = generate_invalid_param_val(make_constraint(constraint))
        except NotImplementedError:
            continue
        checks = [make_constraint(other) for other in cls._parameter_constraints[name]]
        if not any(check.is_satisfied_by(value) for check in checks):
            return (value,)
    return None


def draw_data(rng, *, takes_missing):
    n, m = (
        int(pick(rng, (0, 1, 2, 3, 6, *(20,) * 3, *(40,) * 3))),
        int(pick(rng, (0, 1, 2, 3, *(5,) * 4, 12, 60))),
    )
    shape, scale, container = pick(rng, SHAPES), pick(rng, SCALES), pick(rng, CONTAINERS)
    X = draw_values(rng, n, m, shape)
    if scale == "rows":
        X = X * 10.0 ** rng.uniform(-200, 200, size=(n, 1))
    elif scale == "columns":
        X = X * 10.0 ** rng.uniform(-200, 200, size=(1, m))
    else:
        X = X * scale
    fault = rng.random()
    holes = 0.0
    if (takes_missing and fault < 0.6) or fault < 0.05:
        holes = float(pick(rng, (0.05, 0.2, 0.5, 0.95)))
        X = np.where(rng.random(X.shape) < holes, np.nan, X)
    elif fault > 0.95 and X.size:
        X[rng.integers(n), rng.integers(m)] = pick(rng, (np.inf, -np.inf))
    said = f"{n}x{m} {shape}, scale {scale}, {container}, {holes:.0%} missing"
    with np.errstate(all="ignore"):
        return contain(X, container), said


def draw_values(rng, n, m, shape):
    X = rng.standard_normal((n, m))
    if shape == "union":
        bases = (
            np.linalg.qr(rng.standard_normal((3, m, min(m, 2))))[0] if m else np.zeros((3, 0, 0))
        )
        each = rng.integers(3, size=n)
        codes = rng.standard_normal((n, bases.shape[2]))
        return np.einsum("nms,ns->nm", bases[each], codes) + 0.01 * X
    if shape == "constant":
        return np.full((n, m), 3.0)
    if shape == "zeros":
        return np.zeros((n, m))
    if shape == "duplicates":
        return X[rng.integers(max(1, n // 4), size=n)] if n else X
    if shape == "low rank":
        return np.outer(rng.standard_normal(n), rng.standard_normal(m))
    if shape == "one hot":
        return np.eye(max(n, m, 1))[:n, :m]
    if shape == "integers":
        return rng.integers(-3, 4, size=(n, m)).astype(float)
    return X


def contain(X, container):
    """Return the same values in another container."""
    names = [f"f{j}" for j in range(X.shape[1])]
    frozen = X.copy()
    frozen.setflags(write=False)
    makers = {
        "array": lambda: X,
        "fortran": lambda: np.asfortranarray(X),
        "read-only": lambda: frozen,
        "float32": lambda: X.astype(np.float32),
        "float16": lambda: X.astype(np.float16),
        "integers": lambda: np.nan_to_num(X, posinf=9, neginf=-9).clip(-1e9, 1e9).astype(np.int64),
        "list": lambda: X.tolist(),
        "strided": lambda: np.repeat(X, 2, axis=1)[:, ::2],
        "masked": lambda: np.ma.masked_invalid(X),
        "sparse": lambda: scipy.sparse.csr_array(X),
        "pandas": lambda: pd.DataFrame(X, columns=names),
        "nullable": lambda: pd.DataFrame(X, columns=names).convert_dtypes(convert_integer=False),
        "twice a name": lambda: pd.DataFrame(X, columns=["f"] * X.shape[1]),
        "text": lambda: pd.DataFrame(X, columns=names).assign(word="a"),
        "polars": lambda: pl.DataFrame(X, schema=names),
        "one dimension": lambda: X.ravel(),
        "three dimensions": lambda: X[None],
        "complex": lambda: X + 1j,
        "booleans": lambda: X > 0,
        "objects": lambda: X.astype(object),
    }
    return makers[container]()
