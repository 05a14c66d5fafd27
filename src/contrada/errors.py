"""Every error the package raises for a user's mistake or a peer's.

    ContradaError
    ├── InvalidValue (ValueError)      a value, coordinate or document that no notification or filter may hold
    │   └── InvalidRegion              rings that are no region: names the fault and where it is
    ├── FilterSyntaxError (ValueError) text that is not a filter: line, caret and what was expected
    ├── CodecError (ValueError)        bytes or JSON that are not a message; the reason is the text
    ├── NotFound (KeyError)            no filter of that id, no interface of that name
    ├── CorruptFile                    a file that is truncated, foreign, or of another version
    ├── UnwritableFile (OSError)       a file that could not be written: where, and what the system said
    ├── JournalFailed                  a journal takes nothing: the disk is full or fails, and the reason
    ├── ProtocolError                  the peer broke the wire protocol
    ├── Refused                        the broker said no: not authorised, over a limit, unknown subscription
    └── Disconnected (ConnectionError) the connection is closed or could not be made in time

`InvalidValue` and its neighbours also derive from the builtin that a caller would guess, so that
`except ValueError` works for people who have never read this file.
"""

from __future__ import annotations

_SHOWN = 80


def shown(value: object) -> str:
    """Return a value as messages show it: as Python writes it, but not at any length."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than some thousand digits
        return f"a huge {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


class ContradaError(Exception):
    """Base of everything that Contrada raises on purpose."""


class InvalidValue(ContradaError, ValueError):
    """A value that no notification or filter may hold: NaN, an unknown type, an integer beyond 64 bits."""


class InvalidRegion(InvalidValue):
    """A ring that is not a simple polygon. The message names the fault and the place."""


class FilterSyntaxError(ContradaError, ValueError):
    """Text that is not a filter. The message shows the line, a caret and what was expected."""


class CodecError(ContradaError, ValueError):
    """Bytes or JSON that do not encode what they should. The message is the reason."""


class CorruptFile(ContradaError):
    """A stored index that is truncated, damaged, foreign, or written by an incompatible version."""


class NotFound(ContradaError, KeyError):
    """There is no filter of that id, or no interface of that name."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError would put the message in quotes


class UnwritableFile(ContradaError, OSError):
    """A file that could not be written. The message names the file and what the system said."""


class JournalFailed(ContradaError):
    """A journal could not write or sync. `reason` is what the system said; `full`: there may be room later."""

    def __init__(self, where: str, reason: str, *, full: bool = False) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
        self.full = full

    def again(self) -> JournalFailed:
        """The same for whoever comes later."""
        return JournalFailed(self.where, self.reason, full=self.full)


class ProtocolError(ContradaError):
    """The peer broke the wire protocol."""


class Refused(ContradaError):
    """The broker understood and said no: not authorised, over a limit, no such subscription.

    The message is the broker's reason, for people; `code` is one of `contrada.broker.protocol.wire.Code`, for programs.
    """

    def __init__(self, reason: str = "", *, code: str = "") -> None:
        super().__init__(reason)
        self.code = code


class Disconnected(ContradaError, ConnectionError):
    """The connection is closed, or could not be made in time."""
