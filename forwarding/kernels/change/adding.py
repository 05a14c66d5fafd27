"""Rows of filters: made from a batch of constraints, chained to their interface, and freed.

`interfaces` is (n, 2): the first of an interface's filters, and how many it has; F_PREVIOUS and F_FOLLOWING run through
the rest. Row 0 is never an interface.
"""

from __future__ import annotations

from contrada.forwarding.kernels.change.choosing import word_span
from contrada.forwarding.kernels.change.filing import intern_constraint, release_operand
from contrada.forwarding.kernels.match.batch import FLOAT, Batch, read_scalar
from contrada.forwarding.kernels.match.masks import bits_needed
from contrada.forwarding.kernels.memory.bits import (
    halves,
    high_half,
    low_half,
    status_of,
    status_rest,
    tag_name,
    word_of,
    word_operand,
    word_operator,
)
from contrada.forwarding.kernels.memory.layout import (
    EQ,
    F_ACCESS,
    F_BACK,
    F_CHILD,
    F_CODE,
    F_ELDER,
    F_FOLLOWING,
    F_GROUP,
    F_GROUP_NEXT,
    F_GROUP_PREVIOUS,
    F_INTERFACE,
    F_MASK,
    F_PARENT,
    F_PREVIOUS,
    F_SIZE,
    F_STATE,
    F_YOUNGER,
    FREE,
    IN,
    NUMBER,
    O_TAG,
    OPERATORS,
    PLUG,
    POSTED_NOWHERE,
    S_CONSTRAINTS,
    S_FILTER_COUNT,
    S_FILTER_FREE,
    S_FILTERS,
    S_INTERFACES,
    S_LARGEST,
    S_PLUGS,
    STRING,
    VOID,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.words import give_words, sort_run, take_words
from contrada.spatial.storage.jit import bare_kernel

I_FIRST = 0
I_COUNT = 1


@bare_kernel
def _new_filter(index: Index, interfaces: Ints, interface: int) -> int:
    filters, state = index.filters, index.state
    f = state[S_FILTER_FREE]
    if f != 0:
        state[S_FILTER_FREE] = filters[f, F_FOLLOWING]
    else:
        f = state[S_FILTERS]
        state[S_FILTERS] = f + 1
    row = filters[f]
    row[F_INTERFACE] = interface
    for column in (F_PARENT, F_CHILD, F_ELDER, F_YOUNGER, F_GROUP, F_GROUP_PREVIOUS, F_GROUP_NEXT, F_BACK):
        row[column] = 0
    row[F_ACCESS] = POSTED_NOWHERE
    first = interfaces[interface, I_FIRST]
    row[F_PREVIOUS] = 0
    row[F_FOLLOWING] = first
    if first != 0:
        filters[first, F_PREVIOUS] = f
    interfaces[interface, I_FIRST] = f
    if interfaces[interface, I_COUNT] == 0:
        state[S_INTERFACES] += 1
    interfaces[interface, I_COUNT] += 1
    state[S_FILTER_COUNT] += 1
    return f


@bare_kernel
def read_filter(index: Index, batch: Batch, first: int, last: int, start: int, into: Ints) -> tuple[int, int]:
    """Intern the constraints in rows `first` to `last` and write their words; how many, and where the strings end."""
    count = 0
    r = first
    while r < last:
        code = batch.rows[r, 0]
        name = code >> 8
        op = code >> 4 & 15
        members = batch.rows[r, 1] if op == IN else 1
        if op == IN:
            r += 1
        begin = count
        for m in range(r, r + members):
            kind = batch.rows[m, 0] & 15
            value = batch.rows[m, 1]
            length = 0
            key, low = 0, 0
            if kind == STRING:
                length = low_half(value)
                key = high_half(value)  # of NOT: which pattern
            else:
                key, low = read_scalar(kind, value, batch.floats)
                if kind == FLOAT:
                    kind = NUMBER
            word = intern_constraint(index, name, EQ if op == IN else op, kind, key, low, batch.text, start, length)
            start += length
            into[count] = word
            count += 1
        if op == IN:
            # Members are different values (ValueSet sees to it), so sorting is all they need.
            sort_run(into, begin, count)
            for i in range(count, begin, -1):
                into[i] = into[i - 1]
            into[begin] = word_of(members, IN)
            count += 1
        r += members
    return count, start


@bare_kernel
def add_rows(index: Index, interfaces: Ints, batch: Batch, needed: Ints, owners: Ints, room: Ints, made: Ints) -> None:
    """Make a row for each filter of a batch, not posted yet.

    Filter i has the rows up to `batch.ends[i]`, of which those from `needed[i]` on are redundant; `made[i]` is its row.
    `room` holds twice as many words as the batch has rows.
    """
    start = 0
    row = 0
    for i in range(batch.ends.shape[0]):
        f = _new_filter(index, interfaces, owners[i])
        active, start = read_filter(index, batch, row, needed[i], start, room)
        spare, start = read_filter(index, batch, needed[i], batch.ends[i], start, room[active:])
        row = batch.ends[i]
        total = active + spare
        code = take_words(index, total)
        index.filters[f, F_CODE] = code
        index.filters[f, F_SIZE] = halves(total, active)
        index.filters[f, F_STATE] = status_of(status_rest(index.filters[f, F_STATE]), VOID)
        at = code
        mask = 0
        constraints = 0
        plugs = 0
        for op in range(OPERATORS):
            w = 0
            while w < active:
                span = word_span(room[w])
                if word_operator(room[w]) == op:
                    for j in range(span):
                        index.words[at] = room[w + j]
                        at += 1
                    operand = word_operand(room[w + 1]) if op == IN else word_operand(room[w])
                    mask |= bits_needed(tag_name(index.operands[operand, O_TAG]), op, operand)
                    constraints += 1
                    plugs += op == PLUG
                w += span
        for w in range(active, total):
            index.words[at] = room[w]
            at += 1
        index.filters[f, F_MASK] = mask
        index.state[S_CONSTRAINTS] += constraints
        index.state[S_LARGEST] = max(index.state[S_LARGEST], total)
        index.state[S_PLUGS] = max(index.state[S_PLUGS], plugs)
        made[i] = f


@bare_kernel
def leave_interface(index: Index, interfaces: Ints, f: int) -> None:
    """Unchain a filter from its interface; it no longer counts."""
    filters = index.filters
    following = filters[f, F_FOLLOWING]
    previous = filters[f, F_PREVIOUS]
    interface = filters[f, F_INTERFACE]
    if previous != 0:
        filters[previous, F_FOLLOWING] = following
    else:
        interfaces[interface, I_FIRST] = following
    if following != 0:
        filters[following, F_PREVIOUS] = previous
    interfaces[interface, I_COUNT] -= 1
    if interfaces[interface, I_COUNT] == 0:
        index.state[S_INTERFACES] -= 1
    index.state[S_FILTER_COUNT] -= 1


@bare_kernel
def free_row(index: Index, f: int, events: Ints) -> None:
    """Release the constraints and the row of a filter that is posted nowhere; the row's generation moves on."""
    filters, words, state = index.filters, index.words, index.state
    code = filters[f, F_CODE]
    active = low_half(filters[f, F_SIZE])
    total = high_half(filters[f, F_SIZE])
    at = code
    while at < code + total:
        if at < code + active:
            state[S_CONSTRAINTS] -= 1
        span = word_span(words[at])
        for i in range(at + 1 if word_operator(words[at]) == IN else at, at + span):
            release_operand(index, word_operand(words[i]), events)
        at += span
    give_words(index, code, total)
    filters[f, F_STATE] = status_of(status_rest(filters[f, F_STATE]) + 1, FREE)
    filters[f, F_FOLLOWING] = state[S_FILTER_FREE]
    state[S_FILTER_FREE] = f
