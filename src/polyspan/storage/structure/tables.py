"""The parts of models of tables, and of mixtures in ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.mixture import SubspaceMixture
from polyspan.outliers.learning import Columns, Ensemble
from polyspan.outliers.members import Member
from polyspan.storage.structure.shapes import Shapes, StructureError
from polyspan.tables.column_types import ColumnType
from polyspan.tables.components import Components
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Column, Encoding, Margin
from polyspan.tables.features import DISCRETE, TYPES, Feature
from polyspan.tables.filling import MOST_ROWS, SubspaceModel
from polyspan.tables.forests import Forest, SecondStage
from polyspan.tables.gaussian import Gaussian
from polyspan.tables.mixture_fill import Fill, Scaling
from polyspan.tables.model import TableModel

#: Letters of the name of a type.
MOST_LETTERS = 200
#: Bytes of an entry: a type of NumPy with many would make a column of few rows large.
WIDEST = 16


def _forest(one: Forest, see: Shapes) -> None:
    """Children come after their parent, so that every way through a tree ends at a leaf."""
    see.ints("features", one.features, "nodes", below="seen")
    see.ints("roots", one.roots, None, least=0, below="nodes")
    see.floats("thresholds", one.thresholds, "nodes")
    see.floats("values", one.values, "nodes", "outputs")
    inner = one.features >= 0
    places = np.arange(len(inner))[inner]
    for name in ("left", "right"):
        children = getattr(one, name)
        see.ints(name, children, "nodes", below="nodes")
        if (children[inner] <= places).any():
            raise StructureError(f"{name} of {see.where} has a node that comes before its parent")
    # The compiled loop would be compiled again for other types.
    indices = (one.features, one.roots, one.left, one.right)
    small = all(array.dtype == np.int32 for array in indices)
    if not small or not one.thresholds.dtype == one.values.dtype == np.float32:
        raise StructureError(f"{see.where} has numbers of more than 32 bits")
    if not len(one.roots):
        raise StructureError(f"{see.where} has no tree")


def _second_stage(one: SecondStage, see: Shapes) -> None:
    """Forests are checked by the table, which knows what each of them sees."""
    see.several("first", one.first, "columns")
    see.several("second", one.second, "columns")


def _gaussian(one: Gaussian, see: Shapes) -> None:
    see.floats("mean", one.mean, "encoded")
    see.floats("covariance", one.covariance, "encoded", "encoded")


def _components(one: Components, see: Shapes) -> None:
    see.floats("weights", one.weights, "components")
    see.parts("gaussians", one.gaussians, "components", Gaussian, encoded=see["encoded"])


def _margin(one: Margin, see: Shapes) -> None:
    see.floats("values", one.values, "values")
    see.floats("distinct", one.distinct, "distinct")
    see.floats("scores", one.scores, "distinct")
    if not len(one.values) or not len(one.distinct):
        raise StructureError(f"{see.where} has no values")


def _column(one: Column, see: Shapes) -> None:
    see.floats("frequencies", one.frequencies, "levels")
    see.whole("n_levels", one.n_levels, 0, see["levels"])
    see.same("n_levels", one.n_levels, see["levels"])
    width = 1
    if one.margin is None:
        see.whole("n_levels", one.n_levels, 2, see["levels"])
        see.whole("reference", one.reference, 0, see["levels"] - 1)
        width = one.n_levels - 1
    else:
        see.part("margin", one.margin, Margin)
    see.same("start", one.start, see["start"])
    see.same("stop", one.stop, see["start"] + width)


def _encoding(one: Encoding, see: Shapes) -> None:
    place = 0
    for k, column in enumerate(see.several("columns", one.columns, "columns")):
        see.part(f"columns[{k}]", column, Column, start=place)
        place = column.stop
    see.sizes["encoded"] = place
    see.part("scaling", one.scaling, Scaling, encoded=place)


def _scaling(one: Scaling, see: Shapes) -> None:
    for name in ("mean", "spread", "scale", "least", "most"):
        see.floats(name, getattr(one, name), "encoded")


def _fill(one: Fill, see: Shapes) -> None:
    see.part("scaling", one.scaling, Scaling, encoded=see["encoded"])
    see.parts("models", one.models, None, SubspaceMixture, features=see["encoded"])
    see.floats("slopes", one.slopes, "encoded")
    for size in see.several("sizes", one.sizes, 2):
        see.whole("sizes", size, 0, 2**31)
    see.number("error", one.error)
    see.number("stretch", one.stretch)


def _subspace_model(one: SubspaceModel, see: Shapes) -> None:
    inside = see.part("encoding", one.encoding, Encoding, columns=see["columns"])
    see.part("fill", one.fill, Fill, encoded=inside["encoded"])
    see.floats("errors", one.errors, "columns")


def _donors(one: Donors, see: Shapes) -> None:
    see.ints("rows", one.rows, "donors", least=0, below="rows")
    for name in ("predictions", "values", "errors", "shifts", "scales"):
        see.floats(name, getattr(one, name), "donors")
    see.number("base", one.base)
    see.number("slope", one.slope)
    if not len(one.rows):
        raise StructureError(f"{see.where} has no rows")


def _table_model(one: TableModel, see: Shapes) -> None:
    n = see["columns"]
    q = see.part("encoding", one.encoding, Encoding, columns=n)["encoded"]
    see.part("linear", one.linear, Gaussian, encoded=q)
    see.part("ranks", one.ranks, Gaussian, encoded=q)
    if one.components is not None:
        see.part("components", one.components, Components, encoded=q)
    if one.trees is not None:
        see.part("trees", one.trees, SecondStage, columns=n)
    n_members = 2 + (one.components is not None) + (one.trees is not None)
    see.floats("weights", one.weights, "columns", n_members)
    see.floats("errors", one.errors, "columns")
    see.floats("kept", one.kept, "kept", "columns", finite=False)
    see.whole("n_rows", one.n_rows, 1, 2**31)
    # Draws take a number for each row. A few rows are learned from beside the first MOST_ROWS.
    see.whole("n_table_rows", one.n_table_rows, 1, MOST_ROWS + 2 * n)
    see.several("donors", one.donors, "columns")
    for k, (column, donors) in enumerate(zip(one.encoding.columns, one.donors, strict=True)):
        if column.n_levels:
            see.same(f"donors[{k}]", donors, None)
        else:
            see.part(f"donors[{k}]", donors, Donors, rows=one.n_table_rows)
        if one.trees is not None:
            width = 0 if column.margin is None else column.stop - column.start
            sizes = {"seen": q + width, "outputs": column.n_levels or 1}
            for stage in ("first", "second"):
                see.part(f"trees.{stage}[{k}]", getattr(one.trees, stage)[k], Forest, **sizes)


def _column_type(one: ColumnType, see: Shapes) -> None:
    for name in ("name", "zone", "holds"):
        see.text(name, getattr(one, name))
        see.whole(f"length of {name}", len(getattr(one, name)), 0, MOST_LETTERS)
    _levels(see, "categories", one.categories)
    try:
        dtype = np.dtype(one.name or object)
    except (TypeError, ValueError):  # of pandas, or of Polars
        return
    if dtype.itemsize > WIDEST or dtype.kind == "V":  # "str" of pandas has no size for NumPy
        raise StructureError(f"{see.where} is the type {one.name!r}")


def _levels(see: Shapes, name: str, levels: Any) -> None:
    for level in see.several(name, levels):
        if not isinstance(level, str | int | float | bool):
            raise StructureError(f"{name} of {see.where} has a {type(level).__name__}")


def _feature(one: Feature, see: Shapes) -> None:
    if one.kind not in (*TYPES, "constant", "empty"):
        raise StructureError(f"{see.where} is of kind {one.kind!r}")
    if not isinstance(one.name, str | int):
        raise StructureError(f"{see.where} has a {type(one.name).__name__} as its name")
    _levels(see, "levels", one.levels)
    see.whole("number of levels", len(one.levels), one.kind == "constant", 2**31)
    see.number("step", one.step, 0.0)
    for name in ("reason", "entries"):
        see.text(name, getattr(one, name))
    see.part("type", one.type, ColumnType)
    for bound in see.several("bounds", one.bounds, 2 if one.bounds else 0):
        see.whole("bounds", bound, -(2**64), 2**64)


def check_features(see: Shapes, features: Any, model: Any) -> None:
    """Check the columns of a table, and what fills those that are used."""
    see.parts("_features", features, "features", Feature)
    used = [one for one in features if one.is_used]
    if model is None:
        return
    see.part("_model", model, TableModel, SubspaceModel, columns=len(used))
    for feature, column in zip(used, model.encoding.columns, strict=True):
        levels = len(feature.levels) if feature.kind in DISCRETE else 0
        see.same(f"levels of column {feature.name!r}", column.n_levels, levels)


def _columns(one: Columns, see: Shapes) -> None:
    see.ints("used", one.used, "used", least=0, below="features")
    see.floats("center", one.center, "used")
    see.floats("scale", one.scale, "used")


def _ensemble(one: Ensemble, see: Shapes) -> None:
    for k, members in enumerate(see.several("sets", one.sets, "sets")):
        see.parts(f"sets[{k}]", members, None, Member, used=see["used"])
    see.flags("judges_new", one.judges_new, "sets")
    see.ints("keys", one.keys, "keys")
    see.flags("judges", one.judges, "keys", "sets")


def _member(one: Member, see: Shapes) -> None:
    see.floats("log_weights", one.log_weights, "components")
    see.floats("means", one.means, "components", "used")
    see.floats("bases", one.bases, "components", "used", "dim")
    see.floats("variances", one.variances, "components", "dim")
    see.floats("noise", one.noise, "components")
    see.number("unit", one.unit)


CHECKS: dict[type, Any] = {
    Forest: _forest, SecondStage: _second_stage, Gaussian: _gaussian, Components: _components,
    Margin: _margin, Column: _column, Encoding: _encoding, Scaling: _scaling, Fill: _fill,
    SubspaceModel: _subspace_model, Donors: _donors, TableModel: _table_model,
    ColumnType: _column_type, Feature: _feature, Columns: _columns, Ensemble: _ensemble,
    Member: _member,
}  # fmt: skip
