"""Choosing sizes and weights without labels.

When to trust which: `masked_entry_score` for λ and for the number of subspaces, on samples that
were not learned from; the BIC inside `choose_size` for the dimension; `choose_by_noise` where the
model is to denoise and the noise level is known; the score of the models themselves (minus the
residual) for neither, since it always takes the largest.
"""

from polyspan.model_selection.hidden_entries import hidden_entry_errors, masked_entry_score
from polyspan.model_selection.noise import NoiseChoice, choose_by_noise
from polyspan.model_selection.sizes import SizeChoice, choose_size, gaussian_bic

__all__ = [
    "NoiseChoice",
    "SizeChoice",
    "choose_by_noise",
    "choose_size",
    "gaussian_bic",
    "hidden_entry_errors",
    "masked_entry_score",
]
