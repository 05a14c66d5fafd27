"""Deciding a filter whose access constraint holds: the decoded notification, and the other constraints against it.

Constraints on numbers, strings, bools, times and points are decided here. Those of plugged-in types are left
*pending*: the pair (value, handle) is noted down, to be decided with all others of the batch at once.
"""

from __future__ import annotations

from typing import NamedTuple

from contrada.forwarding.kernels.match.finding import C_PASS, find_substrings
from contrada.forwarding.kernels.memory.bits import low_half, tag_kind, tag_name, word_of, word_operand, word_operator
from contrada.forwarding.kernels.memory.layout import (
    ABSENT,
    EQ,
    EXISTS,
    F_CODE,
    F_SIZE,
    GT,
    IN,
    IS,
    LE,
    LIKE,
    LT,
    NE,
    NOT,
    O_KEY,
    O_LEN,
    O_LOW,
    O_TAG,
    PATTERN_LIKE,
    PATTERN_PREFIX,
    PLUG,
    POINT,
    PREFIX,
    REGION,
    STRING,
    SUFFIX,
    Bytes,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.words import compare_bytes, same_bytes
from contrada.forwarding.kernels.substrings.searching import UNKNOWN, scan
from contrada.forwarding.language.like import LONGEST
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

# Columns of the decoded attributes.
A_NAME = 0
A_KIND = 1
A_KEY = 2
A_LOW = 3
A_START = 4
A_LENGTH = 5
A_OPERAND = 6  # the operand of this very name and value, or 0
A_VALUE = 7  # a plugged-in value's number
A_PASS = 8  # the search that looked for all substrings of its name in it, or 0
A_SCANNED = 9  # steps spent on looking for single ones
A_ORDER = 10  # in the n-th row: which attribute is the n-th to be looked up
A_COLUMNS = 11

_PERCENT, _UNDERSCORE, _BACKSLASH = 0x25, 0x5F, 0x5C
_SCANS = 32  # steps per byte of a text after which it is searched for all substrings: what that costs, about

# Places in Scratch.cursor.
C_FOUND = 0
C_PENDING = 1
C_PAIRS = 2
C_GENERATION = 3
C_FULL = 4  # set when an output ran out of room: the notification is done again with more
C_MET = 5  # postings met, and
C_VERIFIED = 6  # filters whose constraints were looked at: what tests hold the short cuts to
C_CANDIDATES = 7
C_NEXT = 12  # how many filters will have been met in earnest when the next that fails is noted as a suspect
C_SUSPECTS = 13
C_REFUSED = 14  # filters that a plugged-in type's search found, and whose masks were not the notification's
C_LEFT = 15  # interfaces that have not matched; below 0 where that is not asked
C_COUNTERS = 16  # where the counters of filters begin in `stamps`
C_SPARE = 17  # what is left of the allowance (spatial/allowance.py): below 0 the answer is not whole
C_POSTPONED = 18  # how values of plugged-in types were looked up: SEARCHED or one of the following
C_SIZE = 19  # 10 and 11 are finding.py's

# How values of plugged-in types were looked up.
SEARCHED = 0
POSTPONED = 1  # not at all: what is left of counted filters is pending (types/postponing.py)
SIFTED = 2  # more was found than holds: all constraints of what is met are verified (types/trying.py)

EXAMINED = 16  # nanoseconds, about, that a filter takes to be verified

REST = 20  # bits of a counter below its generation, for a number below MOST_COUNTED

SUSPECTS = 64  # room for suspects of one call
LETTERS = 256  # words behind them, all 0 but while a `like` is decided


class Scratch(NamedTuple):
    """What one call writes to."""

    stamps: Ints  # by interface: the generation in which it last matched; after these, by filter: counters
    found: Ints  # interfaces or filters, notification after notification
    candidates: Ints  # postings' payloads of filters yet to be examined
    operands: Ints  # those that the attribute at hand hits
    attributes: Ints  # (n, A_COLUMNS): the notification at hand, decoded
    slots: Ints  # a table from its names to them, a power of two larger than it has attributes, all 0 between calls
    pending: Ints  # (n, 3): notification, filter, end of its pairs
    pairs: Ints  # (n, 3): number of the value, kind, handle
    hashes: Ints  # fingerprints of a text's beginnings, and room beside: see HASHES_BESIDE
    marks: Ints  # by operand: the last search for substrings that found the node, see C_PASS
    suspects: Ints  # filters that were looked at in vain, one in some hundreds: their access may be a bad one; LETTERS
    cursor: Ints


class Message(NamedTuple):
    """One decoded notification: its attributes, an open-addressing table from names to them, and its text."""

    attributes: Ints
    slots: Ints
    text: Bytes


@bare_inline_kernel
def attribute_of(message: Message, name: int) -> int:
    """The attribute of that name, or -1."""
    slots = message.slots
    last = slots.shape[0] - 1
    at = name & last
    while slots[at] != 0:
        if message.attributes[slots[at] - 1, A_NAME] == name:
            return slots[at] - 1
        at = (at + 1) & last
    return -1


@bare_kernel
def compare_value(index: Index, message: Message, a: int, operand: int) -> int:
    """The order of an attribute's value to an operand of the same kind: -1, 0 or 1."""
    value = message.attributes[a]
    row = index.operands[operand]
    if value[A_KEY] != row[O_KEY]:
        return -1 if value[A_KEY] < row[O_KEY] else 1
    if tag_kind(row[O_TAG]) == STRING:
        return compare_bytes(message.text, value[A_START], value[A_LENGTH], index.text, row[O_LOW], row[O_LEN])
    if value[A_LOW] == row[O_LOW]:
        return 0
    return -1 if value[A_LOW] < row[O_LOW] else 1


@bare_kernel
def search_substrings(index: Index, message: Message, scratch: Scratch, a: int, count: int, collect: bool) -> int:
    """Search an attribute's text for all substrings of its name, once for whoever asks (finding.py)."""
    row = message.attributes[a]
    count = find_substrings(
        index,
        row[A_NAME],
        message.text,
        row[A_START],
        row[A_LENGTH],
        scratch.hashes,
        scratch.marks,
        scratch.cursor,
        scratch.operands,
        count,
        collect,
    )
    row[A_PASS] = scratch.cursor[C_PASS]
    return count


@bare_kernel
def _has_pattern(index: Index, message: Message, scratch: Scratch, a: int, op: int, operand: int) -> bool:
    row = index.operands[operand]
    value = message.attributes[a]
    spare = value[A_LENGTH] - row[O_LEN]
    if spare < 0:
        return False
    if op == PREFIX:
        return same_bytes(message.text, value[A_START], index.text, row[O_LOW], row[O_LEN])
    if op == SUFFIX:
        return same_bytes(message.text, value[A_START] + spare, index.text, row[O_LOW], row[O_LEN])
    # A few short scans are cheaper than a search for all patterns; many, or those that get stuck, are not.
    most = _SCANS * value[A_LENGTH] - value[A_SCANNED]
    if value[A_PASS] == 0 and most > 0:
        answer, steps = scan(message.text, value[A_START], value[A_LENGTH], index.text, row[O_LOW], row[O_LEN], most)
        value[A_SCANNED] += steps
        if answer != UNKNOWN:
            return answer == 1
    if value[A_PASS] == 0:
        search_substrings(index, message, scratch, a, 0, False)
    return scratch.marks[row[O_KEY]] == value[A_PASS]


@bare_kernel
def _is_like(index: Index, message: Message, scratch: Scratch, a: int, operand: int) -> bool:
    """Whether an attribute's text is like a pattern: the automaton of language/like.py, over bytes.

    Bit i of `letters[b]` says that element i of the pattern is the byte b. A `_` takes the first byte of a character,
    and its state stays for the bytes that continue it.
    """
    value, row = message.attributes[a], index.operands[operand]
    if value[A_LENGTH] > LONGEST:
        return False
    scratch.cursor[C_SPARE] -= 2 * (value[A_LENGTH] + row[O_LEN])
    letters = scratch.suspects[SUSPECTS:]
    stay, anything, continued, count = 0, 0, 0, 0
    at, end = row[O_LOW], row[O_LOW] + row[O_LEN]
    while at < end:
        letter = index.text[at]
        if letter == _PERCENT:
            stay |= 1 << count
        else:
            if letter == _UNDERSCORE:
                anything |= 1 << count
                continued |= 2 << count
            else:
                if letter == _BACKSLASH:
                    at += 1
                letters[index.text[at]] |= 1 << count
            count += 1
        at += 1
    reached = 1
    for i in range(value[A_START], value[A_START] + value[A_LENGTH]):
        letter = message.text[i]
        if letter & 0xC0 == 0x80:
            reached = (reached & letters[letter]) << 1 | reached & (stay | continued)
        else:
            reached = (reached & (letters[letter] | anything)) << 1 | reached & stay
    for i in range(row[O_LOW], end):
        letters[index.text[i]] = 0
    return reached >> count & 1 == 1


@bare_inline_kernel
def word_holds(index: Index, message: Message, scratch: Scratch, at: int) -> bool:
    """Whether the constraint at `words[at]`, not of a plugged-in type, holds."""
    words = index.words
    op = word_operator(words[at])
    if op == IN:
        low = at + 1
        high = at + word_operand(words[at])
        a = attribute_of(message, tag_name(index.operands[word_operand(words[low]), O_TAG]))
        if a < 0 or message.attributes[a, A_OPERAND] == 0:
            return False
        wanted = word_of(message.attributes[a, A_OPERAND], EQ)
        while low < high:
            middle = (low + high) >> 1
            if words[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        return words[low] == wanted
    operand = word_operand(words[at])
    tag = index.operands[operand, O_TAG]
    a = attribute_of(message, tag_name(tag))
    if a < 0:
        return op == ABSENT
    if op == EQ:
        return message.attributes[a, A_OPERAND] == operand
    if op == EXISTS:
        return True
    kind = message.attributes[a, A_KIND]
    if op >= IS:
        if kind != STRING or op == ABSENT:
            return False
        if op == LIKE or tag_kind(tag) == PATTERN_LIKE:
            return (op == LIKE) == _is_like(index, message, scratch, a, operand)
        if op == NOT:
            return not _has_pattern(index, message, scratch, a, PREFIX + tag_kind(tag) - PATTERN_PREFIX, operand)
        return op == IS or _has_pattern(index, message, scratch, a, op, operand)
    if kind != tag_kind(tag):
        return False
    if op == NE:
        return message.attributes[a, A_OPERAND] != operand
    c = compare_value(index, message, a, operand)
    if op == LT:
        return c < 0
    if op == LE:
        return c <= 0
    if op == GT:
        return c > 0
    return c >= 0


@bare_inline_kernel
def plug_of(kind: int) -> int:
    """The plugged-in type that is asked about values of that kind."""
    return REGION if kind == POINT else kind


@bare_inline_kernel
def examine(index: Index, message: Message, scratch: Scratch, n: int, f: int, skip: int) -> int:
    """Verify a filter but for its first `skip` words: 0 it fails, 1 it matches, 2 it is pending (and noted down)."""
    words, cursor = index.words, scratch.cursor
    cursor[C_VERIFIED] += 1
    at = index.filters[f, F_CODE]
    end = at + low_half(index.filters[f, F_SIZE])
    at += skip
    pairs = cursor[C_PAIRS]
    while at < end:
        word = words[at]
        if word_operator(word) == PLUG:
            operand = word_operand(word)
            tag = index.operands[operand, O_TAG]
            a = attribute_of(message, tag_name(tag))
            if a < 0 or plug_of(message.attributes[a, A_KIND]) != tag_kind(tag):
                return 0
            if pairs >= scratch.pairs.shape[0]:
                cursor[C_FULL] = 1
                return 0
            scratch.pairs[pairs, 0] = message.attributes[a, A_VALUE]
            scratch.pairs[pairs, 1] = tag_kind(tag)
            scratch.pairs[pairs, 2] = index.operands[operand, O_KEY]
            pairs += 1
        elif not word_holds(index, message, scratch, at):
            return 0
        at += 1 + word_operand(word) if word_operator(word) == IN else 1
    if pairs == cursor[C_PAIRS]:
        return 1
    if cursor[C_PENDING] >= scratch.pending.shape[0]:
        cursor[C_FULL] = 1
        return 0
    scratch.pending[cursor[C_PENDING], 0] = n
    scratch.pending[cursor[C_PENDING], 1] = f
    scratch.pending[cursor[C_PENDING], 2] = pairs
    cursor[C_PENDING] += 1
    cursor[C_PAIRS] = pairs
    return 2


@bare_inline_kernel
def finish(index: Index, message: Message, scratch: Scratch, f: int) -> bool:
    """Whether a filter holds whose count is reached.

    What is left are `!=`, NOT and LIKE, which are counted for any value of their type, and ABSENT, which is not.
    """
    words = index.words
    scratch.cursor[C_VERIFIED] += 1
    at = index.filters[f, F_CODE]
    end = at + low_half(index.filters[f, F_SIZE])
    while at < end:
        op = word_operator(words[at])
        if (op == NE or op > PLUG) and not word_holds(index, message, scratch, at):
            return False
        at += 1 + word_operand(words[at]) if op == IN else 1
    return True
