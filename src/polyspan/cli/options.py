"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from polyspan.cli.formats import ENDINGS
from polyspan.tables.features import TYPES

# Of all paths `readable=False`: typer would call a file that may not be read a usage error.
Data = Annotated[
    Path,
    typer.Argument(
        help=f"Samples as rows: {', '.join(ENDINGS)}.", show_default=False, readable=False
    ),
]
Model = Annotated[
    Path,
    typer.Argument(help="A model that `polyspan fit` saved.", show_default=False, readable=False),
]
Output = Annotated[
    Path,
    typer.Option("-o", "--output", help="File to write.", show_default=False, readable=False),
]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random numbers.", min=0)]

# Options for tables.
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        help="Columns to use: names, positions from 0 or ranges 2:10, separated by commas.",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", help="Columns to leave out, as for --columns.", show_default=False),
]
Key = Annotated[str | None, typer.Option("--key", help="Array to take of a .npz with several.")]
Header = Annotated[
    Literal["auto", "yes", "no"],
    typer.Option("--header", help="Whether the first line of a .csv or .tsv file holds names."),
]
Decimal = Annotated[
    Literal[".", ","] | None,
    typer.Option(
        "--decimal",
        help="Decimal separator of a .csv or .tsv file; found from the cells if not given.",
        show_default=False,
    ),
]
Thousands = Annotated[
    Literal[",", ".", " ", "'", ""] | None,
    typer.Option(
        "--thousands",
        help='Thousands separator of such a file, "" for none; found from the cells if not given.',
        show_default=False,
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--types",
        metavar="NAME=TYPE,…",
        help=f"What columns are, for an imputer: {', '.join(TYPES)}.",
        show_default=False,
    ),
]

# Options for models.
Subspaces = Annotated[
    int | None,
    typer.Option("-L", "--subspaces", help="Number of subspaces.", show_default=False, min=1),
]
Dim = Annotated[
    int | None,
    typer.Option("-s", "--dim", help="Dimension of each subspace.", show_default=False, min=1),
]
Lam = Annotated[
    float | None,
    typer.Option("--lam", help="Weight λ of the fit against closeness; inf leaves closeness out."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any other parameter of the class.", show_default=False
    ),
]

# Options for pictures.
Preset = Annotated[
    Literal["fast", "balanced", "best"],
    typer.Option("--preset", help="Trade-off between speed and quality."),
]
