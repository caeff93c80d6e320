"""Fig. 5: the second city scene, complete data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reproduction.experiments.scene_summary import (
    complete_panel,
    number_rows,
    pca_notes,
    pca_rows,
    ranking_claims,
    scene_trials,
    spread_rows,
)
from reproduction.experiments.scenes import NOISES, scene_run
from reproduction.experiments.source import STAND_IN, Source
from reproduction.experiments.tools import finished, without_verdicts
from reproduction.registry import Experiment, register
from reproduction.run.records import Params, Record
from reproduction.sections import Section

DRAWS = {"smoke": 1, "quick": 1, "standard": 24, "paper": 50}
#: Published range of the number of subspaces that each method finds, for each level of noise.
OWN = {"SSC": ((1, 1), (1, 1)), "RSSC": ((7, 8), (7, 8)), "TSC": ((4, 4), (1, 1))}


def trials(scale: str) -> list[Params]:
    """Return every method on every draw of noise."""
    return scene_trials(scale, DRAWS[scale], alpha=20.0, pca=(10, 20))


def run(params: Params, source: Source) -> dict[str, Any]:
    """Run one trial on the street scene."""
    return scene_run(params, source, "street")


def summarise(records: Sequence[Record], source: Source) -> Section:
    """Draw both panels and check the claims of the text."""
    kind = str(records[0].params.get("data", STAND_IN)) if records else STAND_IN
    panels = [complete_panel(records, noise, (10, 20)) for noise in NOISES]
    section = Section(
        id="fig5",
        title="The second city scene",
        where="Fig. 5",
        topic="second photograph",
        text="950 patches of 30×20 pixels from each half of the picture, of norm 1; noise of power "
        ".02 or .05 on the training patches. L=5 and s=12, except for aMiCUSaL, which finds both.",
        rows=[
            *number_rows(records, (5, 6), (11, 12), OWN),
            *spread_rows(records, {"MiCUSaL": 0.00023, "K-sub": 0.00037}),
            *pca_rows(records, 10, (10, 20)),
        ],
        claims=ranking_claims(records),
        panels=[replace(panel, title=panel.title.replace("(d)", "(b)")) for panel in panels],
        source=source.describe("street", kind),
        stand_in=kind == STAND_IN,
        notes=[
            *pca_notes(records, (10, 20)),
            "The picture is not the paper's: its photograph of the Paris City Hall was not found. "
            "Numbers of subspaces that depend on the picture may differ.",
        ],
    )
    if kind != STAND_IN:
        section = without_verdicts(section, "another picture than the paper's", claims=False)
    return finished(section, records)


register(
    Experiment("fig5", "The second city scene", "Fig. 5", trials, run, summarise, needs="street")
)
