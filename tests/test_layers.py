"""The import rule: a module imports only from those above it in the list of the design."""

import ast
import functools
import re
from pathlib import Path

import polyspan

ROOT = Path(polyspan.__file__).parent
#: Ten layers, from the lowest; each knows only those before it. ARCHITECTURE.md has the same list.
LAYERS = [
    ("what every part uses: arrays, checks, files, progress", ["base", "callbacks"]),
    (
        "bases and angles of subspaces, data to try, the words of summaries",
        ["geometry", "metrics", "datasets", "summaries"],
    ),
    ("where rows are, what is missing in them, what they weigh", ["data"]),
    ("numerical parts of all models; graphs of samples", ["engine", "graphs"]),
    ("unions of linear and affine subspaces", ["linear", "batch"]),
    ("unions of Gaussians; unions in the space of a kernel", ["mixture", "kernel", "kernels"]),
    ("how sizes are chosen; what the paper compares with", ["model_selection", "baselines"]),
    ("jobs: tables, outliers, clusters, pictures", ["tables", "outliers", "clustering", "images"]),
    ("figures and comparisons of models", ["plotting", "comparison"]),
    ("model files and the command line", ["storage", "cli"]),
]
#: Where one part of a layer may import another of the same layer.
BESIDE = {
    "callbacks": {"base"},
    "metrics": {"geometry"},
    "datasets": {"geometry"},
    "batch": {"linear"},
    "kernels": {"kernel"},
    "baselines": {"model_selection"},
    "outliers": {"tables"},
    "comparison": {"plotting"},
    "cli": {"storage", ""},  # "": the package, whose public names are imported late
}
HEIGHT = {part: height for height, (_, parts) in enumerate(LAYERS) for part in parts}
FRAMEWORKS = {"torch", "cupy", "jax", "dask", "tensorflow"}


def layer_of(path, root=ROOT):
    return path.relative_to(root).parts[0].removesuffix(".py")


@functools.cache
def nodes(path):
    """Return all parts of a file; every file is read once."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(path):
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write polyspan.… in full"
            if node.module == "polyspan":
                yield from (f"polyspan.{alias.name}" for alias in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def breaches(path, root=ROOT):
    own = layer_of(path, root)
    for module in imported(path):
        top, _, rest = module.partition(".")
        if "_solve" in path.parts and top in FRAMEWORKS | {"sklearn"}:
            yield f"{own}/_solve imports {top}"
        other = rest.split(".")[0]
        if top != "polyspan" or other in {own, *BESIDE.get(own, ())}:
            continue
        if HEIGHT[other] >= HEIGHT[own]:
            yield f"{own} imports {module}"


def private_names(path):
    """Yield what a file imports of scikit-learn that is private, or not in every release."""
    for node in nodes(path):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            top, *rest = name.split(".")
            if top == "sklearn" and (
                rest[:1] == ["callback"] or any(part.startswith("_") for part in rest)
            ):
                yield name


def framework_checks(path):
    """Yield where a file asks which framework an array is of."""
    for node in nodes(path):
        name = getattr(getattr(node, "func", None), "id", "")
        if name in ("isinstance", "issubclass"):
            kinds = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            if kinds & {"np", "xp", *FRAMEWORKS}:
                yield f"line {node.lineno}: {ast.unparse(node)}"
        if re.fullmatch(r"is_(torch|cupy|jax|dask|ndonnx|pydata)_\w+", name):
            yield f"line {node.lineno}: {ast.unparse(node)}"


ARRAYS, PRIVATE = ROOT / "base" / "arrays.py", ROOT / "base" / "private_sklearn.py"
FILES = [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "__init__.py"]


def found_in(files, rule):
    """Return what a rule finds, for every file in which it finds something."""
    assert len(files) > 30
    found = {str(path.relative_to(ROOT)): list(rule(path)) for path in files}
    return {name: lines for name, lines in found.items() if lines}


def test_imports_point_up():
    homeless = {layer_of(path) for path in FILES} - set(HEIGHT)
    assert not homeless, "in no layer: add it to LAYERS in its place"
    assert found_in(FILES, breaches) == {}


def test_the_page_lists_the_same_layers():
    text = (ROOT.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\d+\. (.*)$", text, re.MULTILINE)
    files = {"callbacks", "metrics", "summaries", "batch", "kernels"}
    named = [set(re.findall(r"`(\w+)(?:\.py)?`", line)) - files for line in lines]
    assert named == [set(parts) - files for _, parts in LAYERS]


def test_a_breach_is_noticed(tmp_path):
    bad = tmp_path / "geometry" / "bad.py"
    bad.parent.mkdir()
    bad.write_text("from polyspan.linear._solve.shape import power_step\n", encoding="utf-8")
    assert list(breaches(bad, tmp_path)) == ["geometry imports polyspan.linear._solve.shape"]


def test_scikit_learn_in_a_solver_is_noticed(tmp_path):
    bad = tmp_path / "linear" / "_solve" / "bad.py"
    bad.parent.mkdir(parents=True)
    bad.write_text("from sklearn.cluster import KMeans\nimport dask.array\n", encoding="utf-8")
    assert list(breaches(bad, tmp_path)) == [
        "linear/_solve imports sklearn",
        "linear/_solve imports dask",
    ]


def test_private_names_of_scikit_learn_are_in_one_file():
    assert found_in([p for p in FILES if p != PRIVATE], private_names) == {}


def test_a_private_name_is_noticed(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from sklearn.base import BaseEstimator, _fit_context\n"
        "from sklearn.utils._mask import indices_to_mask\n"
        "import sklearn.callback\n"
        "from sklearn.utils import check_array\n",
        encoding="utf-8",
    )
    assert list(private_names(bad)) == [
        "sklearn.base._fit_context",
        "sklearn.utils._mask.indices_to_mask",
        "sklearn.callback",
    ]


def test_solvers_ask_for_no_framework():
    solvers = [p for p in FILES if p == ARRAYS or layer_of(p) == "geometry" or "_solve" in p.parts]
    assert found_in(solvers, framework_checks) == {}


def test_a_question_for_a_framework_is_noticed(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "isinstance(a, np.ndarray)\nis_torch_array(a)\nisinstance(a, (int, torch.T))\n",
        encoding="utf-8",
    )
    assert len(list(framework_checks(bad))) == 3
