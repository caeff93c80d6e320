"""Choose sizes and weights without labels.

Use `masked_entry_score` for λ and for the number of subspaces, on held-out samples; the BIC inside
`choose_size` for the dimension; `choose_by_noise` if the model is used for denoising and the noise
level is known. Do not use the score of the models themselves (minus the squared residual): it
always prefers the largest model.
"""

from polyspan.model_selection.held_out import (
    NoiseChoice,
    choose_by_noise,
    hidden_entry_errors,
    masked_entry_score,
)
from polyspan.model_selection.size_choice import SizeChoice
from polyspan.model_selection.sizes import choose_size, gaussian_bic

__all__ = [
    "NoiseChoice",
    "SizeChoice",
    "choose_by_noise",
    "choose_size",
    "gaussian_bic",
    "hidden_entry_errors",
    "masked_entry_score",
]


def __dir__() -> list[str]:
    return __all__
