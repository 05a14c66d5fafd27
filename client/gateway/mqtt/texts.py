"""Looks for texts in a packet that are not UTF-8, before the library reads it: `mqtt5` 0.8 panics on those.

Nor may they have the character U+0000, says the standard (1.5.4), and the connection ends.

What is cut short is left alone here: the library refuses that in words.
"""

from __future__ import annotations

from typing import Final

from contrada.errors import ProtocolError

CONNECT, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, DISCONNECT, AUTH = 1, 3, 8, 10, 14, 15
_BYTES: Final = (
    dict.fromkeys((1, 23, 25, 36, 37, 40, 41, 42), 1)
    | dict.fromkeys((19, 33, 34, 35), 2)
    | dict.fromkeys((2, 17, 24, 39), 4)
)
_TEXTS: Final = dict.fromkeys((3, 8, 18, 21, 26, 28, 31), 1) | {38: 2}  # properties of one text, or of two
_BINARY: Final = (9, 22)
_SUBSCRIPTION_ID: Final = 11
_WILL, _PASSWORD, _NAME = 0x04, 0x40, 0x80


def check_texts(whole: bytes, body: int) -> None:
    """Raise `ProtocolError` if a text of a packet of version 5 is not UTF-8."""
    kind = whole[0] >> 4
    try:
        if kind == CONNECT:
            _connect(whole, body)
        elif kind == PUBLISH:
            _properties(whole, _text(whole, body) + (2 if whole[0] & 0x06 else 0))
        elif kind in (SUBSCRIBE, UNSUBSCRIBE):
            at = _properties(whole, body + 2)
            while at < len(whole):
                at = _text(whole, at) + (1 if kind == SUBSCRIBE else 0)
        elif kind in (DISCONNECT, AUTH):
            _properties(whole, body + 1)
        elif len(whole) > body + 3:
            _properties(whole, body + 3)
    except IndexError:
        return
    except UnicodeDecodeError as error:
        raise ProtocolError(
            f"a malformed MQTT packet of type {kind}: a text that is not UTF-8 ({error.reason})"
        ) from None


def _connect(whole: bytes, body: int) -> None:
    flags = whole[body + 7]
    at = _text(whole, _properties(whole, body + 10))
    if flags & _WILL:
        at = _binary(whole, _text(whole, _properties(whole, at)))
    if flags & _NAME:
        _text(whole, at)


def _text(whole: bytes, at: int) -> int:
    end = _binary(whole, at)
    whole[at + 2 : end].decode()
    if 0 in whole[at + 2 : end]:
        raise ProtocolError(f"a malformed MQTT packet of type {whole[0] >> 4}: a text with the character U+0000")
    return end


def _binary(whole: bytes, at: int) -> int:
    """Where a field with its length before it ends."""
    end = at + 2 + (whole[at] << 8 | whole[at + 1])
    if end > len(whole):
        raise IndexError
    return end


def _number(whole: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = whole[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 21:
            raise IndexError


def _properties(whole: bytes, at: int) -> int:
    """Look at the properties that begin at `at`; where they end."""
    length, at = _number(whole, at)
    end = at + length
    if end > len(whole):
        raise IndexError
    while at < end:
        name, at = _number(whole, at)
        if name in _TEXTS:
            for _ in range(_TEXTS[name]):
                at = _text(whole, at)
        elif name in _BINARY:
            at = _binary(whole, at)
        elif name == _SUBSCRIPTION_ID:
            _, at = _number(whole, at)
        elif name in _BYTES:
            at += _BYTES[name]
        else:
            raise IndexError  # no such property: the library says so
    return end
