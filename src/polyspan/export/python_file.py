"""A fitted model as the text of one Python file that needs NumPy alone."""

from __future__ import annotations

import ast
import base64
import textwrap
from importlib.resources import files
from typing import Any

import numpy as np

from polyspan.checks import first_ten
from polyspan.export.fitted import Exported
from polyspan.geometry.bases import subspace_dims

# Parts of `standalone` that an exported file is made of, in their order.
_PARTS = {
    "complete": ("ranges", "complete"),
    "masked": ("elimination", "ranges", "masked"),
    "gaussians": ("elimination", "gaussians"),
}
# Not in files of pipelines, which have no such methods.
_NOT_OF_PIPELINES = ("reconstruct", "impute")

_MEANING = {
    "BASES": "Orthonormal bases, (n_subspaces, n_features, subspace_dim); a subspace of lower\n"
    "# dimension has columns of zeros.",
    "MEAN": "What is subtracted from every sample.",
    "ANCHORS": "Points of affine subspaces, (n_subspaces, n_features); None for linear ones.",
    "MEANS": "Means of the subspaces, (n_subspaces, n_features).",
    "WEIGHTS": "Probabilities of the subspaces.",
    "VARIANCES": "Variances along the bases, beyond the noise, (n_subspaces, subspace_dim).",
    "NOISE": "Variances of the noise of the subspaces.",
    "PRIOR": "Weight of the squares of entries that are filled in.",
    "TOO_FEW": "Samples with so many observed entries, or fewer, have the label -1.",
    "ROWS_AT_ONCE": "Rows are visited in chunks of so many, so that memory stays small.",
    "ROWS_OF_TYPE": "Rows are visited in chunks of so many: of float32 (4 bytes) and float64 (8).",
    "ROWS_OF_GROUP": "The same for rows with one mask for all, and with one mask each.",
    "SAMPLES_PER_PATTERN": "Rows share the work of their mask where masks recur so often.",
    "MIN_GROUP_ROWS": "The same, for the rows of one mask.",
    "STEPS": "What the scalers before the model do.",
}


def python_text(fitted: Exported, version: str) -> str:
    """Return the text of the exported file."""
    scaling = "scaling" if fitted.steps else "unscaled"
    parts = [_Part(name) for name in ("samples", scaling, *_PARTS[fitted.family])]
    leave_out = {"_array", *(_NOT_OF_PIPELINES if fitted.steps else ())}
    if not fitted.has_density:
        leave_out.add("score_samples")
    # The first part declares `predict`, which its `main` calls; the last one has it.
    definitions = [*parts[0].definitions({*leave_out, "predict"})]
    for part in parts[1:]:
        definitions += part.definitions(leave_out)
    public = [name for name in parts[-1].names() if name[0] != "_" and name not in leave_out]
    functions = {name: parts[-1].first_line(name) for name in public}
    sections = [
        f"{_literal(_about(fitted, version, functions))}\n",
        "from __future__ import annotations\n",
        _imports(parts),
        f"\n{parts[0].definition('_array')}\n",
        f"\n{_constants(fitted)}",
        *(f"\n{definition}\n" for definition in definitions),
        '\nif __name__ == "__main__":\n    sys.exit(main(sys.argv[1:]))\n',
    ]
    return "\n".join(sections)


class _Part:
    """The source text of one module of `standalone`."""

    def __init__(self, name: str) -> None:
        source = files("polyspan.export.standalone").joinpath(f"{name}.py")
        self.text = source.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    def _defined(self) -> dict[str, ast.stmt]:
        kinds = (ast.FunctionDef, ast.ClassDef)
        return {node.name: node for node in self.tree.body if isinstance(node, kinds)}

    def names(self) -> list[str]:
        """Return the names of its functions and classes."""
        return list(self._defined())

    def definition(self, name: str) -> str:
        """Return the text of one function or class."""
        found = ast.get_source_segment(self.text, self._defined()[name])
        assert found is not None
        return found

    def first_line(self, name: str) -> str:
        """Return the first line of the docstring of a function."""
        node = self._defined()[name]
        assert isinstance(node, ast.FunctionDef)
        return (ast.get_docstring(node) or "").splitlines()[0]

    def definitions(self, leave_out: set[str]) -> list[str]:
        """Return the text of its functions and classes."""
        return [self.definition(name) for name in self.names() if name not in leave_out]


def _imports(parts: list[_Part]) -> str:
    """Return the imports of all parts, less those of other parts."""
    plain: set[str] = set()
    of_modules: dict[str, set[str]] = {}
    for node in (node for part in parts for node in part.tree.body):
        if isinstance(node, ast.Import):
            plain.add(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and node.module in ("collections.abc", "typing"):
            of_modules.setdefault(node.module, set()).update(alias.name for alias in node.names)
    numpy = {line for line in plain if "numpy" in line}
    names = [
        f"from {module} import {', '.join(sorted(of_modules[module]))}" for module in of_modules
    ]
    return "\n".join([*sorted(plain - numpy), *sorted(names), "", *numpy, ""])


def _about(fitted: Exported, version: str, functions: dict[str, str]) -> str:
    """Return what the file says about itself."""
    count, m, s = fitted.bases.shape
    sizes = f"{count} subspace{'s' if count != 1 else ''} of dimension {s}"
    if len(set(dims := subspace_dims(fitted.bases))) > 1:
        sizes = f"{count} subspaces of dimensions {first_ten(dims)}"
    features = f"{m} features"
    if fitted.features is not None:
        features += " (" + first_ten([repr(name) for name in fitted.features]) + ")"
    before = ", after the scaling of a pipeline" if fitted.steps else ""
    holes = "NaN marks missing entries." if fitted.takes_missing else "X must be complete."
    lines = [
        f"A {fitted.estimator} of polyspan {version}, exported to predict with NumPy alone.",
        "",
        f"{sizes}, {features}, {fitted.bases.dtype}{before}.",
        "Do not edit: export the model again.",
        "",
        f"X has samples as rows, (n_samples, {m}). {holes} Functions:",
        "",
        *(f"    {name}(X): {line}" for name, line in functions.items()),
        "",
        "In a shell, `python THIS_FILE data.csv` (or data.npy) prints the label of every row.",
    ]
    wrapped = [textwrap.fill(line, 98) if not line.startswith(" ") else line for line in lines]
    return "\n".join(wrapped) + "\n"


def _literal(text: str) -> str:
    """Return a docstring; names of features may hold anything."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}"""'


def _constants(fitted: Exported) -> str:
    """Return the assignments of all numbers and arrays."""
    lines = [
        f"ESTIMATOR = {fitted.estimator!r}",
        f"TAKES_MISSING = {fitted.takes_missing!r}",
        f"N_FEATURES = {fitted.bases.shape[1]}",
        f"FEATURES = {fitted.features!r}",
    ]
    values: dict[str, Any] = {**fitted.settings, **fitted.arrays}
    if fitted.steps:
        values["STEPS"] = fitted.steps
    for name, value in values.items():
        lines.append(f"# {_MEANING[name]}")
        lines.append(f"{name} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Return the expression of a value; arrays as base 64 of their little-endian bytes."""
    if isinstance(value, list):  # steps of a pipeline
        return "[" + "".join(f"\n    ({name!r}, {_value(one)})," for name, one in value) + "\n]"
    if not isinstance(value, np.ndarray):
        return repr(value)
    stored = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
    text = base64.b64encode(stored.tobytes()).decode("ascii")
    lines = "\n".join(text[k : k + 96] for k in range(0, len(text), 96))
    return f'_array("{value.dtype.name}", {value.shape}, """\n{lines}\n""")'
