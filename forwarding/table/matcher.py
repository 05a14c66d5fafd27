"""Matching a batch: encode it, search plugged-in types, run the kernel, and let the types decide what is pending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import numpy as np

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.batches.bodies import decode_some
from contrada.forwarding.batches.encode import PointColumn, Values, as_ints, encode_notifications
from contrada.forwarding.kernels.match.matching import match_batch
from contrada.forwarding.kernels.match.verifying import (
    C_FOUND,
    C_PAIRS,
    C_PENDING,
    C_POSTPONED,
    C_SPARE,
    C_SUSPECTS,
    EXAMINED,
    POSTPONED,
    SEARCHED,
    SIFTED,
)
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.lonlat import notification_in_degrees
from contrada.forwarding.types.trying import NOTHING, TRIED, decide_by_rounds
from contrada.forwarding.types.wanted import wanted_of
from contrada.spatial import allowance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from contrada.forwarding.kernels.match.batch import Batch
    from contrada.forwarding.kernels.match.verifying import Scratch
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.state.memory import Memory
    from contrada.forwarding.table.answers import Found
    from contrada.forwarding.types.geotext import GeotextType
    from contrada.forwarding.types.plugged import PluggedType
    from contrada.forwarding.types.region import RegionType
    from contrada.forwarding.types.trying import Given, Turn

    Types: TypeAlias = Mapping[int, PluggedType]
    Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

_T = TypeVar("_T")
MATCH_AT_ONCE: Final = 1024  # notifications matched before others get their turn
_LOW_HALF: Final = (1 << 32) - 1
_MANY_LATE: Final = 128  # filters left to types, above which no more are decided of an interface that has matched
_NO_HITS: Final = np.zeros(0, np.int64)


def match_notifications(
    notifications: Sequence[Mapping[str, object]],
    names: Mapping[str, int],
    memory: Memory,
    types: Types,
    *,
    by_filter: bool,
) -> Found:
    """What was found and where each notification's part ends; then notifications and filters decided late.

    What is found is numbers of interfaces, or with `by_filter` rows of filters.
    """
    return match_encoded(*encode_notifications(notifications, names), memory, types, by_filter=by_filter)


def match_encoded(batch: Batch, values: Values, widest: int, memory: Memory, types: Types, *, by_filter: bool) -> Found:
    """As `match_notifications`, of what is encoded already and has at most `widest` attributes each."""
    scratch, ends, turn = _run(batch, values, widest, memory, types, by_filter)
    try:
        found = scratch.found[: scratch.cursor[C_FOUND]].copy()
        late, filters = (
            _late(scratch, values, types, memory, by_filter) if scratch.cursor[C_PENDING] else (_NO_HITS, _NO_HITS)
        )
        if turn is not None:
            memory.trying.note_turn(turn, values)
        return found, ends, late, filters
    finally:
        memory.give_scratch(scratch)


def match_by_pieces(
    bodies: Sequence[bytes],
    match_plain: Callable[[Sequence[bytes]], tuple[list[Set[_T]], list[int]]],
    match_many: Callable[[Sequence[Mapping[str, object]]], Sequence[Set[_T]]],
    few: int = 0,
) -> tuple[list[Set[_T]], dict[int, CodecError]]:
    """Match encoded notifications: by `match_plain`, which says what it left; the rest, and fewer than `few`, decoded.

    What each matches, nothing if the codec refuses it; and the places of those with the reasons.
    """
    answers: list[Set[_T]] = []
    refused: dict[int, CodecError] = {}
    for start in range(0, len(bodies), MATCH_AT_ONCE):
        piece = bodies[start : start + MATCH_AT_ONCE]
        found, left = match_plain(piece) if len(piece) >= few else ([], [*range(len(piece))])
        if left:
            notifications, wrong = decode_some(piece, left)
            for place, matched in zip(left, match_many(notifications), strict=True):
                found.insert(place, matched)
            refused |= {start + place: error for place, error in wrong.items()}
        answers += found
    return answers, refused


def match_in_degrees(
    bodies: Sequence[bytes], match_many: Callable[[Sequence[Mapping[str, object]]], Sequence[Set[_T]]]
) -> tuple[list[Set[_T]], dict[int, CodecError]]:
    """As `match_by_pieces`, by a table of longitudes and latitudes: places are looked at one by one."""
    answers: list[Set[_T]] = []
    refused: dict[int, CodecError] = {}
    for start in range(0, len(bodies), MATCH_AT_ONCE):
        piece = bodies[start : start + MATCH_AT_ONCE]
        notifications, wrong = decode_some(piece, [*range(len(piece))])
        taken: list[Mapping[str, object]] = []
        for place, each in enumerate(notifications):
            try:
                taken.append(notification_in_degrees(each))
            except InvalidValue as error:
                taken.append({})
                wrong[place] = CodecError(str(error))
        answers += match_many(taken)
        refused |= {start + place: error for place, error in wrong.items()}
    return answers, refused


def _run(
    batch: Batch, values: Values, widest: int, memory: Memory, types: Types, by_filter: bool
) -> tuple[Scratch, Ints, Turn | None]:
    """Scratch with the answers, to be given back, where each notification's end, and what is measured of the call."""
    hits, hit_ends, given = _NO_HITS, _NO_HITS, NOTHING
    turn: Turn | None = None
    count = len(values.values)
    postponed = bool(count) and memory.postponing.pays(len(batch.ends), memory.index, memory.trying)
    if postponed:
        hit_ends = np.zeros(count, np.int64)
    elif count:
        turn = memory.trying.turn(values, memory.index, by_filter=by_filter)
        hits, hit_ends, given = _found_before(batch, values, widest, memory, types, turn)
    scratch = memory.take_scratch(widest, len(batch.text))
    try:
        ends = np.empty(len(batch.ends), np.int64)
        whole = False
        if postponed:
            most = memory.postponing.spare(count, memory.trying)
            scratch, whole = _match(batch, hits, hit_ends, given, scratch, ends, memory, by_filter, POSTPONED, most)
            memory.postponing.note(int(scratch.cursor[C_PAIRS]) if whole else most // EXAMINED, count, memory.trying)
            if not whole:
                hits, hit_ends, given = _found_before(batch, values, widest, memory, types, None)
        if not whole:
            how = SIFTED if turn is not None and turn.sifts else SEARCHED
            scratch, _ = _match(batch, hits, hit_ends, given, scratch, ends, memory, by_filter, how)
            if count and how == SEARCHED and not given.done.any():
                memory.trying.note_late(int(scratch.cursor[C_PAIRS]), count)
        if memory.state[layout.S_MATCHING] >= layout.AUTO and not by_filter:
            asked = len(batch.ends) * int(memory.state[layout.S_INTERFACES])
            memory.matched.note(asked, int(scratch.cursor[C_FOUND]))
        if types and scratch.cursor[C_SUSPECTS]:
            memory.suspects.note(scratch.suspects[: scratch.cursor[C_SUSPECTS]].tolist())
    except BaseException:
        memory.give_scratch(scratch)
        raise
    return scratch, ends, turn


def _found_before(
    batch: Batch, values: Values, widest: int, memory: Memory, types: Types, turn: Turn | None
) -> tuple[Ints, Ints, Given]:
    """What is found of plugged-in values before matching: as `_search` says, and what tries have decided."""
    given = NOTHING
    if turn is not None and turn.way == TRIED:
        given = memory.trying.first(
            batch,
            values,
            widest,
            memory,
            lambda pending, pairs, all: _decide_pending(pending, pairs, all, types, memory, several=True, learn=False),
        )
    sifts = turn is not None and turn.sifts
    return *_search(batch, values, widest, types, given, memory, sifts=sifts), given


def _match(
    batch: Batch,
    hits: Ints,
    hit_ends: Ints,
    given: Given,
    scratch: Scratch,
    ends: Ints,
    memory: Memory,
    by_filter: bool,
    how: int,
    most: int | None = None,
) -> tuple[Scratch, bool]:
    """Run the kernel over a batch; the scratch, which may be another, and whether all was matched.

    `how` plugged-in values were looked up: SEARCHED, POSTPONED or SIFTED. `most` is what it may take of the allowance
    before it ends, if that is less than is left.
    """
    left = allowance.left()
    spare = int(left[0]) if most is None else min(int(left[0]), most)
    scratch.cursor[C_SPARE], scratch.cursor[C_POSTPONED] = spare, how
    done, known = 0, (given.interfaces, given.ends)
    while (done := match_batch(memory.index, batch, hits, hit_ends, *known, scratch, ends, done, by_filter)) < len(
        ends
    ):
        scratch = memory.larger(scratch)
    left[0] -= spare - scratch.cursor[C_SPARE]
    allowance.check(left)
    return scratch, bool(scratch.cursor[C_SPARE] >= 0)


def _late(scratch: Scratch, values: Values, types: Types, memory: Memory, by_filter: bool) -> tuple[Ints, Ints]:
    """The notifications and filters that the types have decided for; unless `by_filter`, not all of an interface."""
    pending, pairs = scratch.pending[: scratch.cursor[C_PENDING]], scratch.pairs[: scratch.cursor[C_PAIRS]]
    several = len(pending) > _MANY_LATE and not by_filter
    sifted = bool(scratch.cursor[C_POSTPONED] == SIFTED)
    held, failed = _decide_pending(pending, pairs, values, types, memory, several=several, learn=not sifted)
    if not sifted and (places := memory.late.chosen(len(pending))):
        memory.suspects.note([int(pending[place, 1]) for place in places if failed[place]])
    late = pending[held]
    return late[:, 0].copy(), late[:, 1].copy()


def _decide_pending(
    pending: Ints, pairs: Ints, values: Values, types: Types, memory: Memory, *, several: bool, learn: bool
) -> tuple[Bools, Bools]:
    """Which of the pending filters hold, and which fail: of an interface that has matched neither need be known.

    With `several` of an interface one filter that holds is enough.
    """
    owners = memory.index.filters[pending[:, 1], layout.F_INTERFACE]
    kind = int(pairs[0, 1])
    if len(types) == 1 or (pairs[:, 1] == kind).all():
        if values.texts:
            values.make(np.unique(pairs[:, 0]).tolist())
        matched = np.zeros(len(memory.interfaces.array) if several else 0, np.int64)
        verdicts = types[kind].decide_pending(pending, pairs, owners, matched, values.values, learn=learn)
        if verdicts is not None:
            return verdicts == 1, verdicts == 0
    if several:
        held = decide_by_rounds(pending, pairs, owners, values, lambda some, all: _decide(some, all, types))
    else:
        starts = np.concatenate(([0], pending[:-1, 2]))
        held = np.logical_and.reduceat(_decide(pairs, values, types), starts)
    return held, ~held


def _search(
    batch: Batch, values: Values, widest: int, types: Types, given: Given, memory: Memory, *, sifts: bool
) -> tuple[Ints, Ints]:
    """The operands that each plugged-in value hits, or where one `sifts` may hit; none of what is decided already."""
    done = given.of_values(batch) if given.done.any() else None
    if done is None and values.are_points and not sifts:
        at_once = _search_points(batch, values, widest, types, memory)
        if at_once is not None:
            return at_once
    found: list[Ints | None] = [None] * len(values.values)
    if values.texts and done is not None:
        values.make(range(len(found)))
    columns = values.texts if done is None else []
    apart = {number for first, texts in columns for number in range(first, first + len(texts))}
    for kind, plugged in types.items():
        mine = [i for i, k in enumerate(values.kinds) if _type_of(k) == kind and not (done is not None and done[i])]
        if apart:
            mine = [i for i in mine if i not in apart]
        before = plugged.decided
        look_up = plugged.sift if sifts else plugged.search
        answers = look_up([values.names[i] for i in mine], [values.values[i] for i in mine])
        for i, answer in zip(mine, answers, strict=True):
            found[i] = answer
        if mine and not sifts:
            memory.trying.note_search(plugged.decided - before, len(mine))
    if columns and layout.GEOTEXT in types:
        handles, ends = _with_texts(found, values, cast("GeotextType", types[layout.GEOTEXT]))
    else:
        ends = np.cumsum([0 if each is None else len(each) for each in found])
        some = [each for each in found if each is not None]
        handles = np.concatenate(some) if some else _NO_HITS
    if not len(handles):
        return _NO_HITS, ends
    if not sifts:
        memory.trying.note_hits(len(handles), len(found))
    if len(types) == 1:
        return memory.posted.find(next(iter(types)), handles), ends
    operands = np.zeros_like(handles)
    kinds = np.repeat([_type_of(kind) for kind in values.kinds], np.diff(ends, prepend=0))
    for kind in types:
        operands[kinds == kind] = memory.posted.find(kind, handles[kinds == kind])
    return operands, ends


def _with_texts(found: list[Ints | None], values: Values, plugged: GeotextType) -> tuple[Ints, Ints]:
    """What was found of single values, with what is found of columns of geotext: handles, and where each one's end."""
    counts = np.array([0 if each is None else len(each) for each in found], np.int64)
    parts: list[Ints] = []
    at = 0
    for first, texts in [*values.texts, (len(found), None)]:
        parts += [each for each in found[at:first] if each is not None]
        if texts is not None and len(texts):
            hits, ends = plugged.search_texts(values.names[first], texts)
            parts.append(hits)
            counts[first : first + len(texts)] = np.diff(ends, prepend=0)
        at = first + (0 if texts is None else len(texts))
    return np.concatenate(parts) if parts else _NO_HITS, np.cumsum(counts)


def _search_points(batch: Batch, values: Values, widest: int, types: Types, memory: Memory) -> tuple[Ints, Ints] | None:
    """As `_search`, of points alone: by their coordinates, without objects; None if that is not possible."""
    regions = cast("RegionType | None", types.get(layout.REGION))
    if regions is None:
        return _NO_HITS, np.zeros(len(values.values), np.int64)
    before = regions.decided
    names = np.where(as_ints(values.kinds) == layout.POINT, as_ints(values.names), 0)
    with wanted_of(batch, len(values.values), widest, memory) as wanted:
        found = regions.search_points(names, _coordinates(batch, values), wanted)
    if found is None:
        return None
    memory.trying.note_search(regions.decided - before, len(values.values))
    memory.trying.note_hits(len(found[0]), len(values.values))
    return memory.posted.find(layout.REGION, found[0]), found[1]


def _coordinates(batch: Batch, values: Values) -> Floats:
    """The coordinates of points, by number."""
    if isinstance(values.values, PointColumn):
        return values.values.xy
    rows = batch.rows[batch.rows[:, 0] & 15 == layout.POINT, 1]
    xy = np.zeros((len(values.values), 2))
    xy[rows >> 32] = batch.floats[(rows & _LOW_HALF)[:, None] + (0, 1)]
    return xy


def _decide(pairs: Ints, values: Values, types: Types) -> Bools:
    """Whether each pending (value, kind, handle) holds."""
    held = np.empty(len(pairs), np.bool_)
    if values.texts:
        values.make(np.unique(pairs[:, 0]).tolist())
    for kind, plugged in types.items():
        mine = pairs[:, 1] == kind
        if mine.all():
            held[:] = plugged.holds(pairs[:, 0].copy(), pairs[:, 2].copy(), values.values)
        elif mine.any():
            held[mine] = plugged.holds(pairs[mine, 0], pairs[mine, 2], values.values)
    return held


def _type_of(kind: int) -> int:
    return layout.REGION if kind == layout.POINT else kind
