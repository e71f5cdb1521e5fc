# SPDX-License-Identifier: Apache-2.0
"""
How much a frame would unpack to, before it is unpacked: two bytes of a frame can be a message of a hundred bytes in
memory. Counts the fields of all messages of an envelope by walking over its bytes.
"""
from __future__ import annotations

from typing import Any

from .errors import ProtocolError

FIELDS_MAX = 1 << 19  # a spec of 131,072 names, two plans of as many wants, 256 releases: what a broker sends at once
SMALL = 64            # a message of so many bytes without messages in it counts as one field
UNSCANNED = 1 << 16   # a frame of so many bytes cannot unpack to much
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MESSAGE = 11          # descriptor.FieldDescriptor.TYPE_MESSAGE
DEPTH_MAX = 16


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


class _Kind:
    """What of a message's fields holds messages."""

    def __init__(self, descriptor: Any) -> None:
        self.messages: dict[int, _Kind] = {}
        for field in descriptor.fields:
            if field.type == MESSAGE:
                self.messages[field.number] = kind_of(field.message_type)


_kinds: dict[str, _Kind] = {}


def kind_of(descriptor: Any) -> _Kind:
    """No message of this protocol contains itself."""
    if descriptor.full_name not in _kinds:
        _kinds[descriptor.full_name] = _Kind(descriptor)
    return _kinds[descriptor.full_name]


def _end_of(data: bytes, at: int, wire: int) -> int:
    if wire == VARINT:
        return _varint(data, at)[1]
    if wire in (FIXED64, FIXED32):
        return at + (8 if wire == FIXED64 else 4)
    raise ValueError(f"a field of wire type {wire}")


def _walk(data: bytes, at: int, end: int, kind: _Kind, left: int) -> int:
    """Returns how many fields may follow."""
    while at < end:
        tag, at = _varint(data, at)
        left -= 1
        if left < 0:
            raise ProtocolError(f"a frame of {len(data)} bytes is too large to decode: more than {FIELDS_MAX} fields")
        if tag & 7 != BYTES:
            at = _end_of(data, at, tag & 7)
            continue
        length, start = _varint(data, at)
        at = start + length
        if at > end:
            break
        inner = kind.messages.get(tag >> 3)
        if inner is not None and (inner.messages or length > SMALL):
            left = _walk(data, start, at, inner, left)
    if at > end:
        raise ValueError("a field goes beyond its message")
    return left


def check_size(descriptor: Any, data: bytes, most: int = FIELDS_MAX) -> None:
    """ProtocolError if the bytes are no message, or one of too many fields."""
    try:
        _walk(data, 0, len(data), kind_of(descriptor), most)
    except (ValueError, IndexError) as error:
        raise ProtocolError(f"not a valid message: {error}") from None
