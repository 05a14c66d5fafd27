"""What went wrong, as RFC 9457 has it: a JSON object with type, title, status and detail, and where it was.

`type` is a relative reference to docs/gateway.md's list of problems, of which this module has the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from contrada.broker.protocol.wire import Code
from contrada.errors import CodecError, ContradaError, Disconnected, FilterSyntaxError, InvalidValue, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE: Final = "application/problem+json"
TITLES: Final[Mapping[str, tuple[int, str]]] = {
    "bad-request": (400, "The request is not understood"),
    "bad-notification": (400, "What was sent is not a notification"),
    "bad-filter": (400, "The text is not a filter"),
    "unauthenticated": (401, "A token is needed"),
    "forbidden": (403, "The token's roles do not allow this"),
    "foreign-origin": (403, "Pages of another origin are not let in"),
    "unknown": (404, "There is no such thing"),
    "too-large": (413, "The request is larger than the limit"),
    "media-type": (415, "The content type is not understood"),
    "limit": (429, "A limit is reached"),
    "refused": (409, "The broker refused"),
    "not-available": (501, "This broker cannot do that"),
    "no-broker": (503, "The broker is not there"),
    "timeout": (504, "The broker did not answer in time"),
}
_CODES: Final = {
    Code.BAD_FILTER: "bad-filter",
    Code.BAD_NOTIFICATION: "bad-notification",
    Code.UNAUTHORISED: "forbidden",
    Code.LIMIT: "limit",
    Code.FLOW: "limit",
    Code.UNKNOWN: "unknown",
    Code.SHUTTING_DOWN: "no-broker",
    Code.STORAGE: "not-available",
}


@dataclass
class Problem(ContradaError):
    """An answer that says no, and why."""

    kind: str
    detail: str
    where: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.detail

    @property
    def status(self) -> int:
        """The HTTP status."""
        return TITLES[self.kind][0]

    def document(self) -> dict[str, Any]:
        """The problem as a JSON object."""
        status, title = TITLES[self.kind]
        return {
            "type": f"/docs/problems#{self.kind}",
            "title": title,
            "status": status,
            "detail": self.detail,
            **self.where,
        }


def problem_of(error: Exception, **where: Any) -> Problem:
    """What to answer for an error; `where` has members of its own, as `line`."""
    if isinstance(error, Problem):
        error.where.update(where)
        return error
    if isinstance(error, Refused):
        return Problem(
            _CODES.get(Code(error.code), "refused") if error.code in set(Code) else "refused", str(error), where
        )
    if isinstance(error, FilterSyntaxError):
        return Problem("bad-filter", str(error), where)
    if isinstance(error, (CodecError, InvalidValue)):
        return Problem("bad-notification", str(error), where)
    if isinstance(error, Disconnected):
        return Problem("no-broker", str(error), where)
    if isinstance(error, TimeoutError):
        return Problem("timeout", str(error), where)
    return Problem("bad-request", str(error), where)
