"""What an operator lets clients keep on the broker's disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from contrada.broker.protocol.messages import Keep

DAY: Final = 86_400
_LARGEST: Final = 2**53


class DurableLimits(NamedTuple):
    """Of all durable subscriptions, of each, of keys and of last values. Ages are seconds.

    `notifications`, `bytes` and `age` are the most that a subscription may keep waiting, and what it keeps unless it
    asks for less.
    """

    subscriptions: int = 10_000
    notifications: int = 1_000_000
    bytes: int = 1 << 30
    age: int = 7 * DAY
    attempts: int = 10  # deliveries before a notification is a dead letter
    dead: int = 1000  # dead letters of one subscription
    abandoned: int = 30 * DAY  # after which a subscription without a client ends
    keys: int = 100_000  # idempotency keys that are remembered
    retained: int = 10_000  # last values,
    retained_bytes: int = 16 << 20
    retained_age: int = 7 * DAY

    def check(self) -> None:
        """Raise `InvalidValue` for what cannot be."""
        for name, value in self._asdict().items():
            if type(value) is not int or not 1 <= value <= _LARGEST:
                raise InvalidValue(f"durable.{name} must be a whole number from 1 to {_LARGEST}, not {value!r}")

    def keep(self, asked: Keep) -> Keep:
        """What a subscription gets of what it asks for."""
        return asked._replace(
            notifications=min(asked.notifications or self.notifications, self.notifications),
            bytes=min(asked.bytes or self.bytes, self.bytes),
            age=min(asked.age or self.age, self.age),
            attempts=asked.attempts or self.attempts,
        )
