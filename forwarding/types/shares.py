"""How large a share of the values under a name satisfies a constraint: what estimates of plugged-in types rest on.

A type guesses a share from what it knows of a constraint beforehand: how its box compares to the universe seen, how
common its words are. What happens puts the guess right: a few of the values searched for and of the pairs decided are
looked at, one in some dozens, so that it costs next to nothing. Nothing of this is saved; no answer depends on it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Floats, Ints

    Box = tuple[float, float, float, float]

WINDOW: Final = 512  # values looked at before the older half of what is known is forgotten
_GUESSED: Final = 64  # values looked at that a guess counts for
_ENOUGH: Final = 4  # hits, seen or expected, from which on what was seen counts
_UNREAD: Final = 1 / 16  # how common a word is thought to be while no text has been read
_TRIED: Final = 4096  # pairs decided before they count half


class Sampler:
    """Chooses one in `every` of things that come in batches, at uneven gaps so as not to keep step with anything."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._random = Random(every)
        self._next = 0

    def chosen(self, count: int) -> list[int]:
        """The places chosen of the next `count`; most often none."""
        at = self._next
        if at >= count:
            self._next = at - count
            return []
        places = []
        while at < count:
            places.append(at)
            at += self._random.randint(1, 2 * self._every - 1)
        self._next = at - count
        return places


class Traffic:
    """What the constraints and the values under one name have shown so far."""

    def __init__(self) -> None:
        self.universe: Box = (np.inf, np.inf, -np.inf, -np.inf)  # around all constraints and values seen
        self._extent = (0.0, 0.0, 0.0)  # of a value, on average: its width, its height, its edges
        self._values = 0
        self._asked = (0.0, 0.0, 0.0)  # the same of constraints
        self._constraints = 0
        self._thought: tuple[float, float, float] | None = None  # what of a value was news last, see `meet`
        self._now: dict[int, int] = {}  # hits by handle among the values looked at, and
        self._before: dict[int, int] = {}  # in the window before
        self._counted = self._counted_before = 0
        self._words: dict[str, float] = {}  # in how many of the texts looked at
        self._texts = 0.0
        self._tried = self._expected = self._held = 0.0  # pairs decided of constraints that are not searched for

    def widen(self, boxes: Floats) -> None:
        """Take boxes, (n, 4), into the universe. What reaches as far as coordinates go says nothing about it."""
        boxes = boxes[np.abs(boxes).max(axis=1) < 1e99]
        if len(boxes):
            low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
            x1, y1, x2, y2 = self.universe
            self.universe = (
                min(x1, float(low[0])),
                min(y1, float(low[1])),
                max(x2, float(high[0])),
                max(y2, float(high[1])),
            )

    def ask(self, boxes: Floats, edges: Ints) -> None:
        """Learn from constraints: the boxes around them, and how many edges they have."""
        self.widen(boxes)
        sides = np.column_stack((boxes[:, 2:] - boxes[:, :2], edges))
        self._constraints = min(self._constraints + len(boxes), 2 * WINDOW)
        more = (sides - self._asked).sum(axis=0) / max(self._constraints, len(boxes), 1)
        width, height, count = (more + self._asked).tolist()
        self._asked = width, height, count

    def _usual_cost(self, value: tuple[float, float, float]) -> float:
        """What a constraint of the usual size costs for a value, up to a factor: whether they touch, and the edges."""
        width, height, edges = self._asked
        return (width + value[0]) * (height + value[1]) * (1.0 + edges * (1.0 + value[2] / 4.0) / 16.0)

    def value(self) -> tuple[float, float, float]:
        """Width, height and edges of a value. Before any has come they are thought to be half of what is asked for."""
        return self._extent if self._values else self._half_of_asked()

    def _half_of_asked(self) -> tuple[float, float, float]:
        width, height, edges = self._asked
        return width / 2, height / 2, edges / 2

    def touching(self, boxes: Floats) -> Floats:
        """The share of values expected to touch each box, were their places spread evenly over the universe."""
        x1, y1, x2, y2 = self.universe
        width, height, _ = self.value()
        across = _part(boxes[:, 2] - boxes[:, 0] + width, x2 - x1 + width)
        along = _part(boxes[:, 3] - boxes[:, 1] + height, y2 - y1 + height)
        return across * along

    def within(self, boxes: Floats, *, around: bool = False) -> Floats:
        """The share of values expected to lie within each box, or around it, as `touching` says; some are larger."""
        x1, y1, x2, y2 = self.universe
        width, height, _ = self.value()
        across = _part(_beyond(boxes[:, 2] - boxes[:, 0], width, around), x2 - x1 + width)
        along = _part(_beyond(boxes[:, 3] - boxes[:, 1], height, around), y2 - y1 + height)
        return across * along

    def meet(self, box: Box, found: Iterable[int], edges: int = 0) -> bool:
        """Learn from a value: the box around it, the handles that a search for it found, how many edges it has.

        Whether it is news that constraints cost less than half, or more than twice, of what was thought.
        """
        x1, y1, x2, y2 = box
        left, bottom, right, top = self.universe
        if not (left <= x1 and bottom <= y1 and x2 <= right and y2 <= top):
            self.widen(np.array((box,)))
        self._values = count = min(self._values + 1, 2 * WINDOW)
        width, height, before = self._extent
        self._extent = (
            width + (x2 - x1 - width) / count,
            height + (y2 - y1 - height) / count,
            before + (edges - before) / count,
        )
        if self._counted == WINDOW:
            self._before, self._now = self._now, {}
            self._counted_before, self._counted = WINDOW, 0
        self._counted += 1
        hits = self._now
        for handle in found:
            hits[handle] = hits.get(handle, 0) + 1
        thought = self._usual_cost(self._thought or self._half_of_asked())
        is_judged_by = self._constraints > 0
        is_news = is_judged_by and not thought / 2 <= self._usual_cost(self._extent) <= 2 * thought
        if is_news or not is_judged_by:
            self._thought = self._extent
        return is_news

    def read(self, words: Iterable[str]) -> None:
        """Learn from the words of a value."""
        if self._texts == WINDOW:
            self._words = {word: count / 2 for word, count in self._words.items() if count > 1}
            self._texts = WINDOW / 2
        self._texts += 1
        for word in words:
            self._words[word] = self._words.get(word, 0.0) + 1

    def having(self, words: Iterable[str]) -> float:
        """The share of values expected to have all these words, were they independent."""
        share = 1.0
        for word in words:
            share *= (self._words.get(word, 0.0) + _UNREAD) / (self._texts + 1)
        return share

    def decide(self, expected: float, held: bool) -> None:
        """Learn from a pair of a value and a constraint of that guessed share, which another constraint had led to."""
        if self._tried == _TRIED:
            self._tried, self._expected, self._held = _TRIED / 2, self._expected / 2, self._held / 2
        self._tried += 1
        self._expected += expected
        self._held += held

    def forget(self, handle: int) -> None:
        """Let a handle go, which may be given again."""
        self._now.pop(handle, None)
        self._before.pop(handle, None)

    def corrected(self, handles: Ints, guesses: Floats, posted: NDArray[np.bool_]) -> Floats:
        """Guessed shares of constraints, put right by what happened."""
        counted = self._counted + self._counted_before
        hits = np.array([self._now.get(h, 0) + self._before.get(h, 0) for h in handles.tolist()], np.float64)
        seen = (_GUESSED * guesses + hits) / (_GUESSED + counted)
        # Those that are not searched for are as far off as their like was, where they were decided one by one.
        others = guesses * ((_ENOUGH + self._held) / (_ENOUGH + self._expected))
        known = np.maximum(hits, guesses * counted) >= _ENOUGH
        return np.minimum(np.where(posted, np.where(known, seen, guesses), others), 1.0)


def _beyond(sides: Floats, extent: float, around: bool) -> Floats:
    """By how much each side is longer than those of values, on average, or with `around` shorter; at least 0.

    Values are of any size up to twice the extent that they have on average.
    """
    if extent <= 0.0:
        return np.zeros(len(sides)) if around else sides
    least = np.minimum(sides, 2.0 * extent)
    if around:
        return (2.0 * extent - least) ** 2 / (4.0 * extent)
    return least**2 / (4.0 * extent) + (sides - least)


def _part(part: Floats, whole: float) -> Floats:
    """What part is of the whole, 1 at most; everything where there is no whole."""
    return np.minimum(part / whole, 1.0) if 0 < whole < np.inf else np.ones(len(part))
