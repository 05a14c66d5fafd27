"""How similar a message is to a subscription ([ROADS], Def. 4 to 8), and how far a similar one can be.

    TSIM(s, m) = weight of the words that s and m share / weight of the words of s; 0 where those weigh nothing
    SIM(s, m)  = α · (1 − d_N(s, m) / D_max) + (1 − α) · TSIM(s, m)

m is similar to s when d_N(s, m) ≤ D_max and SIM(s, m) ≥ τ. Beyond D_max, and where no road leads, nothing is similar,
with α = 0 too. The operations are those written, in doubles, in this order: `similarity` is the definition, exactly,
and what every index decides by. Weights (`weights.py`) and distances (`checking.py`) are exact, so it has one value.

`reach` is Eq. 7, 8 and 13 in one: the distance within which a message must be that shares so much. The paper divides
by α and by 1 − α; here nothing is divided unless the quotient is below one, so 0 and 1 are no special cases. It is
generous by more than rounding can matter, and never less than a distance at which `similarity` reaches τ.
"""

from __future__ import annotations

from typing import NamedTuple

from contrada.spatial.storage.jit import kernel

# Of `similarity`, which has five roundings of numbers up to one, and of `reach` itself.
_ROUNDING = 1e-14
_WIDER = 1.0 + 1e-12


class Similarity(NamedTuple):
    """What a message has in common with a subscription."""

    distance: float  # along roads; infinite where none leads
    words: float  # TSIM
    value: float  # SIM; -infinity beyond D_max


@kernel
def similarity(alpha: float, distance: float, d_max: float, words: float) -> float:
    """SIM, for distances up to D_max."""
    return alpha * (1.0 - distance / d_max) + (1.0 - alpha) * words


@kernel
def reach(alpha: float, tau: float, words: float, d_max: float) -> float:
    """Return a distance beyond which no message with that TSIM, or less, is similar; negative where none is at all."""
    spare = alpha + (1.0 - alpha) * words - tau + _ROUNDING
    if spare < 0.0:
        return -1.0
    if spare >= alpha:
        return d_max
    return min(d_max, d_max * (spare / alpha) * _WIDER)
