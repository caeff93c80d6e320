"""The parts of kernel models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan.kernel._solve.subspaces import KernelSubspaces
from polyspan.kernel.fitted_unions import ExactUnion, LowRankUnion
from polyspan.kernel.fitting import KernelRun
from polyspan.kernel.functions import Kernel
from polyspan.kernel.nystrom import NystromMap
from polyspan.storage.structure.shapes import Shapes


def _kernel(one: Kernel, see: Shapes) -> None:
    see.text("name", one.name)
    if one.gamma is not None:
        see.number("gamma", one.gamma)
    see.number("degree", one.degree)
    see.number("coef0", one.coef0)


def _centerer(one: KernelCenterer, see: Shapes) -> None:
    see.floats("K_fit_rows_", one.K_fit_rows_, "samples")
    see.number("K_fit_all_", one.K_fit_all_)


def _subspaces(one: KernelSubspaces, see: Shapes) -> None:
    members_and_coefs(see, one.members, one.coefs)


def members_and_coefs(see: Shapes, members: Any, coefs: Any) -> None:
    """Check the samples that span each subspace, and their coefficients."""
    see.several("members", members, "subspaces")
    see.several("coefs", coefs, "subspaces")
    for k, (own, E) in enumerate(zip(members, coefs, strict=True)):
        see.ints(f"members[{k}]", own, None, least=0, below=see.sizes.get("samples"))
        see.floats(f"coefs[{k}]", E, len(own), None)


def _exact(one: ExactUnion, see: Shapes) -> None:
    if one.kernel is None:
        see.floats("X", one.X, "samples")
    else:
        see.part("kernel", one.kernel, Kernel)
        see.floats("X", one.X, "samples", "features", finite=not one.incomplete)
    n = see["samples"]
    see.part("centerer", one.centerer, KernelCenterer, samples=n)
    inside = see.part("subspaces", one.subspaces, KernelSubspaces, samples=n)
    see.sizes["subspaces"] = inside["subspaces"]
    for name in ("gram", "signs"):
        if getattr(one, name) is not None:
            see.floats(name, getattr(one, name), "samples", "samples")
    if one.shares is not None:
        see.floats("shares", one.shares, "samples")
    if one.kept is not None:
        see.ints("kept", one.kept, "samples", least=0)
    if one.fill is not None:
        see.number("fill", one.fill)


def _map(one: NystromMap, see: Shapes) -> None:
    see.part("kernel", one.kernel, Kernel)
    see.floats("landmarks", one.landmarks, "landmarks", "features")
    see.floats("whitener", one.whitener, "landmarks", "rank")


def _low_rank(one: LowRankUnion, see: Shapes) -> None:
    inside = see.part("map", one.map, NystromMap, features=see["features"])
    see.sizes["rank"] = inside["rank"]
    see.floats("mean", one.mean, "rank")
    see.floats("bases", one.bases, "subspaces", "rank", None)


def _run(one: KernelRun, see: Shapes) -> None:
    see.number("objective", one.objective)
    see.number("criterion", one.criterion)
    if isinstance(one.labels, np.ndarray):
        see.ints("labels", one.labels, None, least=-1, below="subspaces")
    else:
        see.same("labels", one.labels, None)


CHECKS: dict[type, Any] = {
    Kernel: _kernel, KernelCenterer: _centerer, KernelSubspaces: _subspaces, ExactUnion: _exact,
    NystromMap: _map, LowRankUnion: _low_rank, KernelRun: _run,
}  # fmt: skip
