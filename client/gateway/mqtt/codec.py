"""MQTT's control packets from and to bytes, by the library `mqtt5`, which knows version 5.

Version 3.1.1 is version 5 without properties: what comes in that version gets empty properties put in where version 5
has them, and is read as version 5; what goes out in it is written as version 5, and its properties are taken out.

    CONNECT      … level 4→5, keep alive | + 00 | client id | + 00 if there is a will | will topic …
    PUBLISH      topic [number] | + 00 | payload
    SUBSCRIBE, UNSUBSCRIBE      number | + 00 | topic filters
    CONNACK      flags, return code of the older version
    SUBACK       number | - 00 | codes, 0x80 for every failure;    UNSUBACK      number alone
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import mqtt5

from contrada.client.gateway.mqtt.texts import check_texts
from contrada.errors import ProtocolError

CONNECT, CONNACK, PUBLISH, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, DISCONNECT = 1, 2, 3, 8, 9, 10, 11, 14
_OLD_CODES: Final = {
    0: 0,
    132: 1,
    133: 2,
    136: 3,
    137: 3,
    151: 3,
    134: 4,
    135: 5,
}  # CONNACK; all else is 5, not authorised
_WILL: Final = 0x04
_PLAIN: Final = 0x30  # the first byte of a PUBLISH without flags


class PlainPublish(NamedTuple):
    """A PUBLISH of quality 0 without properties, not to be retained: what comes most, read without the library."""

    topic: str
    payload: bytes


Incoming: TypeAlias = mqtt5.Packet | PlainPublish


class OtherVersion(ProtocolError):
    """A CONNECT of a version that is not spoken; `answer` says so in words of that version."""

    def __init__(self, level: int) -> None:
        super().__init__(f"MQTT of level {level}; 5 and 4 (3.1.1) are spoken")
        self.answer = b"\x20\x03\x00\x84\x00" if level > 4 else b"\x20\x02\x00\x01"


class TooLarge(ProtocolError):
    """A packet that is longer than the settings allow."""


class Reader:
    """Bytes as they come → packets. The first must be CONNECT, which says the version."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._parts: list[bytes] = []  # of a packet that is not all there,
        self._size = 0  # bytes of them,
        self._needed = 1  # and how many it takes before there is something to read
        self.fault: ProtocolError | None = None  # what is behind the packets that were read last
        self.version = 0

    def feed(self, data: bytes) -> list[Incoming]:
        """Take in the next bytes; what is whole. `ProtocolError` says what is wrong, and ends the connection.

        What is wrong behind others is the `fault`: those are dealt with first.
        """
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return []
        read: list[Incoming] = []
        try:
            self._read(b"".join(self._parts), read)
        except ProtocolError as error:
            if not read:
                raise
            self.fault = error
        return read

    def _read(self, buffer: bytes, read: list[Incoming]) -> None:
        start = 0
        while True:
            if self.version:
                start = _read_plain(buffer, start, self.version, self._largest, read)
            if (found := _frame(buffer, start, self._largest)) is None:
                break
            body, end = found
            whole = buffer[start:end]
            if not self.version:
                self.version = _version_of(whole, body - start)
            if self.version == 4:
                whole = _modern(whole, body - start)
            check_texts(whole, _body_at(whole))
            try:
                one, _ = mqtt5.read(memoryview(whole))
            except (ValueError, IndexError, OverflowError) as error:
                raise ProtocolError(f"a malformed MQTT packet of type {whole[0] >> 4}: {error}") from None
            read.append(one)
            start = end
        self._parts, self._size = [buffer[start:]], len(buffer) - start
        self._needed = _needed(buffer, start)


def write(one: mqtt5.Packet, version: int) -> bytes:
    """A packet as bytes of a version; none for what that version cannot say."""
    data: bytes = one.write()
    if version != 4:
        return data
    kind = data[0] >> 4
    if kind == DISCONNECT:
        return b""  # an older server just closes
    body = _body_at(data)
    if kind == CONNACK:
        return bytes((data[0], 2, data[body], _OLD_CODES.get(data[body + 1], 5)))
    if kind == PUBLISH:
        return _without_properties(data, body, _publish_head(data, body))
    if kind == SUBACK:
        length, at = _length_at(data, body + 2)  # a reason may be there, which this version cannot say
        codes = bytes(0x80 if code >= 0x80 else code for code in data[at + length :])
        return _framed(data[0], data[body : body + 2] + codes)
    if kind == UNSUBACK:
        return _framed(data[0], data[body : body + 2])
    return _framed(data[0], data[body : body + 2]) if len(data) > body else data


def publish_bytes(topic: bytes, payload: bytes, version: int) -> bytes:
    """A message of quality 0 without properties: what is sent most, without an object."""
    head = _topic_head(topic, version)
    length = len(head) + len(payload)
    size = _SHORT[length] if length < 128 else _sized(_PLAIN, length)
    return b"".join((size, head, payload))


@lru_cache(maxsize=4096)
def _topic_head(topic: bytes, version: int) -> bytes:
    """What of a PUBLISH of quality 0 without properties is before the payload."""
    return len(topic).to_bytes(2, "big") + topic + (b"" if version == 4 else b"\0")


def _read_plain(buffer: bytes, start: int, version: int, largest: int, read: list[Incoming]) -> int:
    """Read what needs no library, one behind another; where something else begins, or is not all there.

    Something else is also a PUBLISH that has properties, or with which something is wrong.
    """
    size, properties = len(buffer), 0 if version == 4 else 1
    raw, topic = b"", ""  # of the one before: most are alike
    while start + 5 <= size and buffer[start] == _PLAIN:
        length, body = buffer[start + 1], start + 2
        if length & 0x80:
            if (found := _frame(buffer, start, largest)) is None:
                break
            body, end = found
        else:
            end = body + length
        at = body + 2 + (buffer[body] << 8 | buffer[body + 1])
        if end > size or at + properties > end or end - body > largest or (properties and buffer[at]):
            break
        if buffer[body + 2 : at] != raw:
            raw = buffer[body + 2 : at]
            try:
                topic = raw.decode()
            except UnicodeDecodeError:
                break
        read.append(PlainPublish(topic, buffer[at + properties : end]))
        start = end
    return start


def _frame(buffer: bytes, start: int, largest: int) -> tuple[int, int] | None:
    """Where the body of the packet at `start` begins and ends; None if it is not all there."""
    length = shift = 0
    for at in range(start + 1, min(len(buffer), start + 5)):
        byte = buffer[at]
        length |= (byte & 0x7F) << shift
        if not byte & 0x80:
            if length > largest:
                raise TooLarge(f"an MQTT packet of {length} bytes; at most {largest} are taken")
            end = at + 1 + length
            return (at + 1, end) if end <= len(buffer) else None
        shift += 7
    if len(buffer) >= start + 5:
        raise ProtocolError("a malformed MQTT packet: its length has more than four bytes")
    return None


def _needed(buffer: bytes, start: int) -> int:
    """How many bytes from `start` on it takes to read on."""
    length = shift = 0
    for at in range(start + 1, min(len(buffer), start + 5)):
        length |= (buffer[at] & 0x7F) << shift
        if not buffer[at] & 0x80:
            return at + 1 + length - start
        shift += 7
    return len(buffer) - start + 1


def _version_of(whole: bytes, body: int) -> int:
    if whole[0] == 0x10 and whole[body : body + 9] == b"\0\6MQIsdp\3":
        raise OtherVersion(3)
    if whole[0] != 0x10 or whole[body : body + 6] != b"\0\4MQTT" or len(whole) < body + 8:
        raise ProtocolError("not MQTT 5 or 3.1.1: the first packet must be CONNECT, of protocol MQTT")
    version, flags = whole[body + 6 : body + 8]
    if version not in (4, 5):
        raise OtherVersion(version)
    if flags & 1:
        raise ProtocolError("a malformed CONNECT: its reserved flag is set")
    return version


def _modern(whole: bytes, body: int) -> bytes:
    """A packet of version 3.1.1 as one of version 5."""
    kind = whole[0] >> 4
    if kind == CONNECT:
        if len(whole) < body + 12:
            raise ProtocolError("a malformed CONNECT: too short")
        name_end = body + 12 + int.from_bytes(whole[body + 10 : body + 12], "big")
        will = b"\0" if whole[body + 7] & _WILL else b""
        head = whole[body : body + 6] + b"\5" + whole[body + 7 : body + 10] + b"\0"
        return _framed(whole[0], head + whole[body + 10 : name_end] + will + whole[name_end:])
    if kind == PUBLISH:
        at = _publish_head(whole, body)
        return _framed(whole[0], whole[body:at] + b"\0" + whole[at:])
    if kind in (SUBSCRIBE, UNSUBSCRIBE):
        if kind == SUBSCRIBE and any(quality & 0xFC for quality in _qualities(whole, body + 2)):
            raise ProtocolError("a malformed SUBSCRIBE: the options of version 5 in version 3.1.1")
        return _framed(whole[0], whole[body : body + 2] + b"\0" + whole[body + 2 :])
    return whole


def _qualities(whole: bytes, at: int) -> list[int]:
    """The byte behind each topic filter of a SUBSCRIBE."""
    found: list[int] = []
    while at + 2 <= len(whole):
        at += 2 + int.from_bytes(whole[at : at + 2], "big")
        found += whole[at : at + 1]
        at += 1
    return found


def _publish_head(data: bytes, body: int) -> int:
    """Where the topic and the number of a PUBLISH end."""
    end = body + 2 + int.from_bytes(data[body : body + 2], "big") + (2 if data[0] & 0x06 else 0)
    if end > len(data):
        raise ProtocolError("a malformed PUBLISH: too short")
    return end


def _without_properties(data: bytes, body: int, at: int) -> bytes:
    length, end = _length_at(data, at)
    return _framed(data[0], data[body:at] + data[end + length :])


def _body_at(data: bytes) -> int:
    return _length_at(data, 1)[1]


def _length_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _framed(first: int, body: bytes) -> bytes:
    return _sized(first, len(body)) + body


def _sized(first: int, length: int) -> bytes:
    """The first byte of a packet, and the length of what is behind."""
    size = bytearray((first,))
    while True:
        length, low = length >> 7, length & 0x7F
        size.append(low | (0x80 if length else 0))
        if not length:
            return bytes(size)


_SHORT: Final = tuple(_sized(_PLAIN, length) for length in range(128))
