"""Three hundred drawn calls keep the contract; `make fuzz` runs as many as one likes."""

import pytest
from fuzz_cases import SPACES, draw_case
from fuzz_contract import check

import polyspan
from polyspan import baselines


@pytest.mark.parametrize("part", range(10))
def test_drawn_calls_keep_the_contract(part):
    ended = [check(draw_case(seed)) for seed in range(30 * part, 30 * part + 30)]
    assert {"result", "error"} == set(ended)  # both were met


def test_every_estimator_is_drawn():
    estimators = {getattr(baselines, name) for name in baselines.__all__}
    estimators |= {
        value for name in polyspan.__all__ if hasattr(value := getattr(polyspan, name), "fit")
    }
    assert estimators == set(SPACES)
