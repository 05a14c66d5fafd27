"""What words weigh: given once, with the network, so that a filter means the same whoever else subscribes.

[ROADS] (Def. 6) takes inverse document frequencies over the subscriptions. A filter would then match today what it did
not yesterday because somebody else subscribed, two linked brokers would disagree, and what covers what would change
under the table's feet. So weights are the network's: those given, and `other` for every other word; by default every
word weighs 1. `idf_weights` computes the paper's from any corpus, such as last week's subscriptions or messages.

Weights are rounded to multiples of 2**-24 and are at most 65,536, so that sums of some thousand are exact in any order.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.errors import CorruptFile, InvalidValue, shown
from contrada.spatial.storage.row_numbers import check_shapes, check_that
from contrada.spatial.textual.geotext import check_keywords, wanted_keywords

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

_FINE = 2.0**24
_MOST = 65_536.0


class KeywordWeights:
    """Weights of words: `weights.of("ipad")`."""

    def __init__(self, given: Mapping[str, float] | None = None, other: float = 1.0) -> None:
        try:
            items = list((given or {}).items())
        except AttributeError:
            raise InvalidValue(f"weights map words to numbers; this is a {type(given).__name__}") from None
        self.other = _checked(other, "other words")
        self._known: dict[str, float] = {}
        for word, weight in items:
            words = wanted_keywords([word])
            if len(words) > 1:
                raise InvalidValue(f"{shown(word)} is read as the words {sorted(words)}: each has a weight of its own")
            (folded,) = words
            if folded in self._known:
                raise InvalidValue(f"the word {folded!r} has two weights: words are compared folded")
            self._known[folded] = _checked(weight, f"the word {folded!r}")

    def of(self, word: str) -> float:
        """Return the weight of a folded word."""
        return self._known.get(word, self.other)

    def total(self, words: Iterable[str]) -> float:
        """Return the weight of words together; exact."""
        return sum(map(self.of, words), 0.0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what to save."""
        encoded = [word.encode() for word in self._known]
        return {
            "words": np.frombuffer(b"".join(encoded), np.uint8),
            "word_ends": np.cumsum([len(each) for each in encoded], dtype=np.int64),
            "weights": np.array([*self._known.values(), self.other]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> KeywordWeights:
        """Invert `arrays`."""
        shapes = {"words": (np.uint8, ()), "word_ends": (np.int64, ()), "weights": (np.float64, ())}
        check_shapes("road network", arrays, shapes)
        text, ends = arrays["words"].tobytes(), arrays["word_ends"].tolist()
        *weights, other = arrays["weights"].tolist()
        check_that("road network: a weight that is none", (arrays["weights"] >= 0) & (arrays["weights"] <= _MOST))
        if len(weights) != len(ends) or len(text) != (ends[-1] if ends else 0):
            raise CorruptFile("road network: words and their weights do not fit together")
        made = cls(other=other)
        starts = [0, *ends[:-1]]
        made._known = {
            text[start:end].decode(): weight for start, end, weight in zip(starts, ends, weights, strict=False)
        }
        return made


def idf_weights(texts: Iterable[str | Iterable[str]]) -> dict[str, float]:
    """Inverse document frequencies log(1 + N / df) of the words of N texts, or sets of keywords.

    >>> idf_weights(["tram strike", "tram", ["tram", "fair"], "late tram"])["tram"] < 0.7
    True
    """
    counts: dict[str, int] = {}
    number = 0
    for text in texts:
        number += 1
        for word in check_keywords(text):
            counts[word] = counts.get(word, 0) + 1
    return {word: log(1 + number / count) for word, count in counts.items()}


def _checked(weight: object, whose: str) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float, np.floating, np.integer)):
        raise InvalidValue(f"the weight of {whose} is {weight!r}, a {type(weight).__name__}; expected a number")
    if not 0 <= weight <= _MOST:  # as it is: an integer may be too large for a float
        raise InvalidValue(f"the weight of {whose} is {shown(weight)}; weights are from 0 to {_MOST:.0f}")
    return round(float(weight) * _FINE) / _FINE
