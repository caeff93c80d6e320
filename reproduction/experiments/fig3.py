"""Fig. 3: the two photographs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.experiments.source import REAL, STAND_IN, Source
from reproduction.experiments.tools import finished
from reproduction.registry import Experiment, register
from reproduction.run.records import Params, Record
from reproduction.sections import Panel, Picture, Section


def trials(scale: str) -> list[Params]:
    """Return one trial for each photograph."""
    return [{"draw": 0, "picture": name} for name in ("scene", "street")]


def run(params: Params, source: Source) -> dict[str, Any]:
    """Count the patches that the picture gives."""
    kind = source.kind(params["picture"])
    image, train, test = source.scene(kind, params["picture"])
    return {"shape": list(image.shape), "train": len(train), "test": len(test), "kind": kind}


def summarise(records: Sequence[Record], source: Source) -> Section:
    """Show both pictures."""
    pictures: list[Picture] = []
    lines, kinds = [], []
    for record in records:
        if record.results is None:
            continue
        found, name = record.results, record.params["picture"]
        kinds.append(found["kind"])
        image, _, _ = source.scene(found["kind"], name)
        rows, columns = found["shape"]
        caption = (
            f"({'ab'[len(pictures)]}) {rows}×{columns} pixels, {found['train']} patches per half"
        )
        pictures.append(Picture(image[::2, ::2], caption))
        lines.append(source.describe(name, found["kind"]))
    section = Section(
        id="fig3",
        title="The city scenes",
        where="Fig. 3",
        text="Methods learn from patches of 30×20 pixels of the left half and denoise those of the "
        "right half. The paper has 722 and 950 patches in each half.",
        panels=[Panel("The photographs", pictures=pictures)],
        source=" ".join(lines),
        stand_in=STAND_IN in kinds or REAL not in kinds,
        notes=[
            "It is not known whether the City Hall photograph is the paper's own; the second one "
            "is of another city."
        ],
    )
    return finished(section, records)


register(Experiment("fig3", "The city scenes", "Fig. 3", trials, run, summarise, needs="scene"))
