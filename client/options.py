"""How a client behaves: names, patience, back-off, bounds and keys; and what its subscriptions ask for beside a filter.

Those of a client are checked once, when it is made; those of a subscription where it is made (`arguments`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import Parameter, cleandoc, signature
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from contrada.broker.protocol.messages import Keep
from contrada.broker.protocol.wire import NAME_BYTES, Policy
from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from random import Random

    from contrada.client.arguments import SinceArgument

    Key = str | Path


_T = TypeVar("_T")


class OptionNames(TypedDict, total=False):
    """The fields of `Options`, as keyword arguments."""

    name: str
    connect_timeout: float
    attempt_timeout: float
    close_timeout: float
    reconnect: bool
    give_up_after: float | None
    backoff: float
    backoff_max: float
    outstanding: int
    key: Key | None
    server_key: Key | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Keyword arguments of `connect` and `Client`. All times are seconds.

    name              shown in `contrada status`, and the publisher's name where keys do not name it
    connect_timeout   how long the first connection may take before it fails with the reason
    attempt_timeout   how long one attempt waits for the broker's WELCOME
    close_timeout     how long closing waits for streamed publications and the broker's goodbye
    reconnect         whether a lost connection is made again and the subscriptions restored
    give_up_after     how long reconnecting is tried; None: for ever
    backoff           pause after the first failed attempt; doubles with each, then jittered to 50-100 %
    backoff_max       the longest such pause
    outstanding       notifications published and not yet acknowledged; publishing waits when they are so many
    key, server_key   CURVE: this client's secret key file, and the broker's public key (a file or its 40 characters)
    """

    name: str = ""
    connect_timeout: float = 15.0
    attempt_timeout: float = 3.0
    close_timeout: float = 5.0
    reconnect: bool = True
    give_up_after: float | None = None
    backoff: float = 0.05
    backoff_max: float = 5.0
    outstanding: int = 4096
    key: Key | None = None
    server_key: Key | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Make options of keyword arguments; `InvalidValue` names one that is none."""
        check_names(cls, given, "a client")
        return cls(**given)

    def __post_init__(self) -> None:
        for field in ("connect_timeout", "attempt_timeout", "close_timeout", "backoff", "backoff_max", "give_up_after"):
            value = getattr(self, field)
            if value is None and field == "give_up_after":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value <= 0:
                raise InvalidValue(f"{field} must be a positive number of seconds, not {value!r}")
        if not isinstance(self.name, str) or len(self.name.encode(errors="replace")) > NAME_BYTES:
            raise InvalidValue(f"name must be a string of at most {NAME_BYTES} bytes, not {self.name!r:.200}")
        if any(0xD800 <= ord(character) < 0xE000 for character in self.name):
            raise InvalidValue(f"name holds half a surrogate pair, which UTF-8 cannot write: {self.name!r}")
        if not isinstance(self.reconnect, bool):
            raise InvalidValue(f"reconnect must be true or false, not {self.reconnect!r}")
        if type(self.outstanding) is not int or self.outstanding < 1:
            raise InvalidValue(f"outstanding must be an integer of at least 1, not {self.outstanding!r}")
        if (self.key is None) != (self.server_key is None):
            missing = "server_key" if self.server_key is None else "key"
            raise InvalidValue(f"CURVE needs both keys: {missing} is missing (make a pair with `contrada keygen`)")

    def pause(self, attempt: int, random: Random) -> float:
        """How long to wait after failed attempt number `attempt`, counted from 0."""
        longest = min(self.backoff_max, self.backoff * 2.0 ** min(attempt, 60))
        return longest * random.uniform(0.5, 1.0)


class SubscriptionOptionNames(TypedDict, total=False):
    """The fields of `SubscriptionOptions`, as keyword arguments."""

    policy: Policy | str
    window: int
    queue: int
    durable: str | None
    since: SinceArgument
    ack: str
    keep: Keep


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionOptions:
    """Keyword arguments of `subscribe` and `attach`. See `docs/client.md`, and `docs/durability.md` from `durable` on.

    policy    what happens when the queue at the broker is full: drop-oldest, block or disconnect
    window    notifications that may be on their way, or wait here to be taken
    queue     notifications that may wait at the broker; 0: its default
    durable   a name: the subscription outlives client and broker
    since     where a new durable one begins: "all", a notification's id, a datetime or seconds since 1970; else now
    ack       "auto": what was taken is acknowledged when the next is asked for; "manual": by `n.ack()`
    keep      what of it the broker keeps, and for how long
    """

    policy: Policy | str = Policy.DROP_OLDEST
    window: int = 1000
    queue: int = 0
    durable: str | None = None
    since: SinceArgument = None
    ack: str = "auto"
    keep: Keep = Keep()  # noqa: RUF009  # an immutable tuple

    @classmethod
    def of(cls, given: SubscriptionOptionNames) -> SubscriptionOptions:
        """Make options of keyword arguments; `InvalidValue` names one that is none."""
        check_names(cls, given, "a subscription")
        return cls(**given)


def check_names(options: type, given: Iterable[str], whose: str) -> None:
    """Raise `InvalidValue` unless each of the names is an option."""
    known = list(signature(options).parameters)
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise InvalidValue(f"{whose} has no option {name!r}{hint}; the options are {', '.join(known)}")


def takes_options(options: type) -> Callable[[_T], _T]:
    """Decorate what takes these as keyword arguments, so that `help` and editors show each with its default."""

    def decorate(made: _T) -> _T:
        own = signature(made)  # type: ignore[arg-type]  # a class or a function
        keywords = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in signature(options).parameters.values()]
        named = [parameter for parameter in own.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        made.__signature__ = own.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]  # functions and classes have room for it
        if made.__doc__ and options.__doc__:  # neither is there under python -OO
            made.__doc__ = f"{cleandoc(made.__doc__)}\n\n{cleandoc(options.__doc__)}"
        return made

    return decorate
