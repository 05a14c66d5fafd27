"""What a filter needs of a notification, in 64 bits, so that most filters that fail are passed over unseen.

A filter has the bits of the names that must be there and of the values that it asks for with `=`; a notification has
those of its names and of its values that are operands. A filter with a bit that the notification lacks cannot match.
Bits are shared by chance, so one whose bits are all there may still fail, and is looked at.
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.keys import mix
from contrada.forwarding.kernels.memory.layout import ABSENT, EQ
from contrada.spatial.storage.jit import bare_kernel


@bare_kernel
def name_bit(name: int) -> int:
    """The bit of a name."""
    return 1 << (name & 63)


@bare_kernel
def value_bit(operand: int) -> int:
    """The bit of a value that is an operand: of the upper half, which the names of most tables leave free."""
    return 1 << (32 + (mix(operand, 1) & 31))


@bare_kernel
def bits_needed(name: int, op: int, operand: int) -> int:
    """The bits of a constraint; its operand counts if it is asked for with `=`, and absence has none."""
    if op == ABSENT:
        return 0
    return name_bit(name) | value_bit(operand) if op == EQ else name_bit(name)
