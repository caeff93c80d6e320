"""What must hold in the parts of fitted models, type by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan.kernel._solve.subspaces import KernelSubspaces
from polyspan.kernel.fitted_unions import ExactUnion, LowRankUnion
from polyspan.kernel.fitting import KernelRun
from polyspan.kernel.functions import Kernel
from polyspan.kernel.nystrom import NystromMap
from polyspan.linear._solve.memory import Memory
from polyspan.linear._solve.merging import Merge
from polyspan.linear.streaming import Stream
from polyspan.mixture import SubspaceMixture
from polyspan.outliers.learning import Columns, Ensemble
from polyspan.outliers.members import Member
from polyspan.storage.structure import (
    Rule,
    Shapes,
    StructureError,
    flags,
    floats,
    ints,
    nonempty,
    numbers,
    part,
    parts,
    several,
    texts,
    wholes,
)
from polyspan.tables import SubspaceImputer
from polyspan.tables.columns import ColumnType
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


def _memory(one: Memory, see: Shapes) -> None:
    for k, rows in enumerate(see.several("factors", one.factors, "subspaces")):
        see.floats(f"factors[{k}]", rows, None, "features")


def _stream(one: Stream, see: Shapes) -> None:
    if one.memory is not None or one.first is None:
        if "subspaces" not in see.sizes:  # there are no bases yet
            see.same("memory", one.memory, None)
        see.part("memory", one.memory, Memory, **see.sizes)


def spans(members: str, coefs: str) -> Rule:
    """Return the rule for the samples that span each subspace, and their coefficients."""

    def checked(one: Any, see: Shapes) -> None:
        indices = see.several(members, getattr(one, members), "subspaces")
        factors = see.several(coefs, getattr(one, coefs), "subspaces")
        for k, (own, E) in enumerate(zip(indices, factors, strict=True)):
            see.ints(f"{members}[{k}]", own, None, least=0, below=see.sizes.get("samples"))
            see.floats(f"{coefs}[{k}]", E, len(own), None)

    return checked


def _samples(one: ExactUnion, see: Shapes) -> None:
    if one.kernel is None:
        see.floats("X", one.X, "samples")
    else:
        see.part("kernel", one.kernel, Kernel)
        see.floats("X", one.X, "samples", "features", finite=not one.incomplete)


def _forest(one: Forest, see: Shapes) -> None:
    """Children come after their parent, so that every way through a tree ends at a leaf."""
    places = np.flatnonzero(one.features >= 0)
    for name in ("left", "right"):
        if (getattr(one, name)[places] <= places).any():
            raise StructureError(f"{name} of {see.where} has a node that comes before its parent")
    # The compiled loop would be compiled again for other types.
    indices = (one.features, one.roots, one.left, one.right)
    small = all(array.dtype == np.int32 for array in indices)
    if not small or not one.thresholds.dtype == one.values.dtype == np.float32:
        raise StructureError(f"{see.where} has numbers of more than 32 bits")


def _column(one: Column, see: Shapes) -> None:
    see.whole("n_levels", one.n_levels, see["levels"], see["levels"])
    width = 1
    if one.margin is None:
        see.whole("n_levels", one.n_levels, 2, see["levels"])
        see.whole("reference", one.reference, 0, see["levels"] - 1)
        width = one.n_levels - 1
    see.same("start", one.start, see["start"])
    see.same("stop", one.stop, see["start"] + width)


def _encoding(one: Encoding, see: Shapes) -> None:
    place = 0
    for k, column in enumerate(see.several("columns", one.columns, "columns")):
        see.part(f"columns[{k}]", column, Column, start=place)
        place = column.stop
    see.sizes["encoded"] = place


def _sizes(one: Fill, see: Shapes) -> None:
    for size in see.several("sizes", one.sizes, 2):
        see.whole("sizes", size, 0, 2**31)


def _table_model(one: TableModel, see: Shapes) -> None:
    n = see["columns"]
    n_members = 2 + (one.components is not None) + (one.trees is not None)
    see.floats("weights", one.weights, "columns", n_members)
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
            sizes = {"seen": see["encoded"] + width, "outputs": column.n_levels or 1}
            for stage in ("first", "second"):
                see.part(f"trees.{stage}[{k}]", getattr(one.trees, stage)[k], Forest, **sizes)


def _column_type(one: ColumnType, see: Shapes) -> None:
    for name in ("name", "zone", "holds"):
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
    for bound in see.several("bounds", one.bounds, 2 if one.bounds else 0):
        see.whole("bounds", bound, -(2**64), 2**64)


def imputer_features(one: SubspaceImputer, see: Shapes) -> None:
    """Check the columns of a table, and what fills those that are used."""
    see.parts("_features", one._features, "features", Feature)
    used = [feature for feature in one._features if feature.is_used]
    model = one._model
    if model is None:
        return
    see.part("_model", model, TableModel, SubspaceModel, columns=len(used))
    for feature, column in zip(used, model.encoding.columns, strict=True):
        levels = len(feature.levels) if feature.kind in DISCRETE else 0
        see.same(f"levels of column {feature.name!r}", column.n_levels, levels)


def _ensemble(one: Ensemble, see: Shapes) -> None:
    for k, members in enumerate(see.several("sets", one.sets, "sets")):
        see.parts(f"sets[{k}]", members, None, Member, used=see["used"])


LAYOUT: dict[type, Sequence[Rule]] = {
    Memory: (
        floats("reference", "features"),
        floats("counts", "subspaces"),
        floats("totals", "subspaces", "features"),
        numbers("squares"),
        wholes("rank", 0, "features"),
        _memory,
    ),
    Stream: (
        numbers("n_seen n_fitted scale", 0.0),
        several("options", 4),
        floats("sums counts", "features"),
        floats("first", "rows", "features", finite=False, optional=True),
        floats("first_weights", "rows", optional=True),
        _stream,
    ),
    Merge: (texts("kind"), wholes("n_left", 0, 2**31), numbers("distance")),
    Kernel: (texts("name"), numbers("gamma", optional=True), numbers("degree coef0")),
    KernelCenterer: (floats("K_fit_rows_", "samples"), numbers("K_fit_all_")),
    KernelSubspaces: (spans("members", "coefs"),),
    ExactUnion: (
        _samples,
        part("centerer", KernelCenterer, samples="samples"),
        part("subspaces", KernelSubspaces, samples="samples", subspaces=None),
        floats("gram signs", "samples", "samples", optional=True),
        floats("shares", "samples", optional=True),
        ints("kept", "samples", least=0, optional=True),
        numbers("fill", optional=True),
    ),
    NystromMap: (
        part("kernel", Kernel),
        floats("landmarks", "landmarks", "features"),
        floats("whitener", "landmarks", "rank"),
    ),
    LowRankUnion: (
        part("map", NystromMap, features="features", rank=None),
        floats("mean", "rank"),
        floats("bases", "subspaces", "rank", None),
    ),
    KernelRun: (
        numbers("objective criterion"),
        ints("labels", None, least=-1, below="subspaces", optional=True),
    ),
    Forest: (
        ints("features", "nodes", below="seen"),
        ints("roots", None, least=0, below="nodes"),
        ints("left right", "nodes", below="nodes"),
        floats("thresholds", "nodes"),
        floats("values", "nodes", "outputs"),
        nonempty("roots"),
        _forest,
    ),
    # Forests are checked by the table, which knows what each of them sees.
    SecondStage: (several("first second", "columns"),),
    Gaussian: (floats("mean", "encoded"), floats("covariance", "encoded", "encoded")),
    Components: (
        floats("weights", "components"),
        parts("gaussians", "components", Gaussian, encoded="encoded"),
    ),
    Margin: (
        floats("values", "values"),
        floats("distinct scores", "distinct"),
        nonempty("values distinct"),
    ),
    Column: (floats("frequencies", "levels"), part("margin", Margin, optional=True), _column),
    Encoding: (_encoding, part("scaling", Scaling, encoded="encoded")),
    Scaling: (floats("mean spread scale least most", "encoded"),),
    Fill: (
        part("scaling", Scaling, encoded="encoded"),
        parts("models", None, SubspaceMixture, features="encoded"),
        floats("slopes", "encoded"),
        numbers("error stretch"),
        _sizes,
    ),
    SubspaceModel: (
        part("encoding", Encoding, columns="columns", encoded=None),
        part("fill", Fill, encoded="encoded"),
        floats("errors", "columns"),
    ),
    Donors: (
        ints("rows", "donors", least=0, below="rows"),
        floats("predictions values errors shifts scales", "donors"),
        numbers("base slope"),
        nonempty("rows"),
    ),
    TableModel: (
        part("encoding", Encoding, columns="columns", encoded=None),
        part("linear", Gaussian, encoded="encoded"),
        part("ranks", Gaussian, encoded="encoded"),
        part("components", Components, optional=True, encoded="encoded"),
        part("trees", SecondStage, optional=True, columns="columns"),
        floats("errors", "columns"),
        floats("kept", "kept", "columns", finite=False),
        wholes("n_rows", 1, 2**31),
        _table_model,
    ),
    ColumnType: (texts("name zone holds"), _column_type),
    Feature: (
        numbers("step", 0.0),
        texts("reason entries"),
        part("type", ColumnType),
        _feature,
    ),
    Columns: (
        ints("used", "used", least=0, below="features"),
        floats("center scale", "used"),
    ),
    Ensemble: (
        _ensemble,
        flags("judges_new", "sets"),
        ints("keys", "keys"),
        flags("judges", "keys", "sets"),
    ),
    Member: (
        floats("log_weights noise", "components"),
        floats("means", "components", "used"),
        floats("bases", "components", "used", "dim"),
        floats("variances", "components", "dim"),
        numbers("unit"),
    ),
}
