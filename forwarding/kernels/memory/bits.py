"""What is packed into one 64-bit integer in the table's arrays, by name: nothing else shifts or masks them.

    tag      name << 8 | kind                                an operand's: which attribute, and which kind of value
    word     operand << 4 | operator                         one constraint of a filter; `in`: its count << 4 | IN
    payload  filter << 33 | alone << 32 | counted << 31 | interface number
                                                             a posting's: whom it is of; `alone`: nothing else to
                                                             verify; `counted`: each of its constraints has one
    status   rest << 8 | one of few                          a filter's state and generation, or its access and skip
    halves   high << 32 | low                                two counts or two row numbers

All are inlined by the compiler: they cost what the shifts cost.
"""

from __future__ import annotations

from typing import Final

from contrada.spatial.storage.jit import bare_kernel

LOW_HALF: Final = (1 << 32) - 1
INTERFACE: Final = (1 << 31) - 1  # of a payload
COUNTED: Final = 31  # the place of its bit in a payload
_KIND: Final = 8
_OPERATOR: Final = 4
_FILTER: Final = 33


@bare_kernel
def tag_of(name: int, kind: int) -> int:
    """The tag of operands of a name and a kind."""
    return name << _KIND | kind


@bare_kernel
def tag_name(tag: int) -> int:
    """The number of the name that a tag is of."""
    return tag >> _KIND


@bare_kernel
def tag_kind(tag: int) -> int:
    """The kind that a tag is of."""
    return tag & 255


@bare_kernel
def word_of(operand: int, operator: int) -> int:
    """The word of a constraint, or of an `in` with so many members."""
    return operand << _OPERATOR | operator


@bare_kernel
def word_operand(word: int) -> int:
    """The operand of a constraint's word; of an `in`, how many members follow."""
    return word >> _OPERATOR


@bare_kernel
def word_operator(word: int) -> int:
    """The operator of a constraint's word."""
    return word & 15


@bare_kernel
def pack_payload(f: int, alone: int, counted: int, interface: int) -> int:
    """What a posting of a filter carries."""
    return f << _FILTER | alone << 32 | counted << COUNTED | interface


@bare_kernel
def payload_filter(payload: int) -> int:
    """The filter that a posting is of."""
    return payload >> _FILTER


@bare_kernel
def payload_alone(payload: int) -> int:
    """1 if nothing else of its filter is to be verified."""
    return payload >> 32 & 1


@bare_kernel
def payload_counted(payload: int) -> int:
    """1 if its filter is counted."""
    return payload >> COUNTED & 1


@bare_kernel
def payload_interface(payload: int) -> int:
    """The number of the interface that a posting is of."""
    return payload & INTERFACE


@bare_kernel
def status_of(rest: int, now: int) -> int:
    """A filter's state and generation, or its access and skip."""
    return rest << 8 | now


@bare_kernel
def status_now(status: int) -> int:
    """The state of a filter (F_STATE), or how it is posted (F_ACCESS)."""
    return status & 255


@bare_kernel
def status_rest(status: int) -> int:
    """The generation of a filter (F_STATE), or how many words its posting has decided (F_ACCESS)."""
    return status >> 8


@bare_kernel
def halves(high: int, low: int) -> int:
    """Two numbers of 32 bits in one."""
    return high << 32 | low


@bare_kernel
def high_half(both: int) -> int:
    """The first of two."""
    return both >> 32


@bare_kernel
def low_half(both: int) -> int:
    """The second of two."""
    return both & LOW_HALF
