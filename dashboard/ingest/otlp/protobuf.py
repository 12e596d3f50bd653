"""Protobuf decoder: turns the binary form of OTLP metrics into the objects of the JSON form.
Decodes only the messages that a region needs. Pure code."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from dashboard.ingest.body_decoder import RefusalError

MAX_VALUES = 1 << 20
"""Maximum number of fields and bins in one request: each may take a single byte."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_WIDTH = {FIXED64: 8, FIXED32: 4}


class Field(NamedTuple):
    """A field by its JSON name, with its type and whether it repeats."""

    name: str
    kind: str
    many: bool = False


Message = dict[int, Field]
MESSAGES: dict[str, Message] = {
    "request": {1: Field("resourceMetrics", "resource metrics", True)},
    "resource metrics": {
        1: Field("resource", "resource"),
        2: Field("scopeMetrics", "scope metrics", True),
    },
    "resource": {1: Field("attributes", "attribute", True)},
    "scope metrics": {2: Field("metrics", "metric", True)},
    "metric": {
        1: Field("name", "text"),
        3: Field("unit", "text"),
        5: Field("gauge", "numbers"),
        7: Field("sum", "numbers"),
        10: Field("exponentialHistogram", "sketches"),
    },
    "numbers": {
        1: Field("dataPoints", "number", True),
        2: Field("aggregationTemporality", "varint"),
    },
    "sketches": {
        1: Field("dataPoints", "sketch", True),
        2: Field("aggregationTemporality", "varint"),
    },
    "number": {
        2: Field("startTimeUnixNano", "fixed"),
        3: Field("timeUnixNano", "fixed"),
        4: Field("asDouble", "double"),
        6: Field("asInt", "signed"),
        7: Field("attributes", "attribute", True),
    },
    "sketch": {
        1: Field("attributes", "attribute", True),
        2: Field("startTimeUnixNano", "fixed"),
        3: Field("timeUnixNano", "fixed"),
        4: Field("count", "fixed"),
        5: Field("sum", "double"),
        6: Field("scale", "zigzag"),
        7: Field("zeroCount", "fixed"),
        8: Field("positive", "bins"),
        9: Field("negative", "bins"),
        12: Field("min", "double"),
        13: Field("max", "double"),
    },
    "bins": {1: Field("offset", "zigzag"), 2: Field("bucketCounts", "varint", True)},
    "attribute": {1: Field("key", "text"), 2: Field("value", "value")},
    "value": {
        1: Field("stringValue", "text"),
        2: Field("boolValue", "flag"),
        3: Field("intValue", "integer"),
        4: Field("doubleValue", "double"),
    },
}
_STRUCTS = {"fixed": "<Q", "signed": "<q", "double": "<d"}


def decode_metrics(body: bytes) -> dict[str, Any]:
    """The request in the body. Raises RefusalError if the body is not a request."""
    budget = [MAX_VALUES]
    try:
        return _decode_message(body, MESSAGES["request"], budget)
    except (IndexError, struct.error, UnicodeDecodeError):
        raise RefusalError(
            "bad_request", "The body is not an ExportMetricsServiceRequest in protobuf."
        ) from None


def _decode_message(data: bytes, message: Message, budget: list[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, wire, value in _iterate_fields(data, budget):
        field = message.get(number)
        if field is None:
            continue
        values = list(_decode_values(field, wire, value, budget))
        if field.many:
            found.setdefault(field.name, []).extend(values)
        elif values:
            found[field.name] = values[-1]
    return found


def _iterate_fields(data: bytes, budget: list[int]) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and raw value of each field."""
    at, end = 0, len(data)
    while at < end:
        _spend(budget)
        tag, at = _decode_varint(data, at)
        wire = tag & 7
        if wire == VARINT:
            value, at = _decode_varint(data, at)
            yield tag >> 3, wire, value
            continue
        if wire == BYTES:
            size, at = _decode_varint(data, at)
        elif wire in _WIDTH:
            size = _WIDTH[wire]
        else:
            raise IndexError(wire)
        if size > end - at:
            raise IndexError(size)
        yield tag >> 3, wire, data[at : at + size]
        at += size


def _decode_values(field: Field, wire: int, value: Any, budget: list[int]) -> Iterator[Any]:
    """The values of the field; several where numbers are packed. A field of an unexpected wire type
    is skipped."""
    if field.kind in MESSAGES and wire == BYTES:
        yield _decode_message(value, MESSAGES[field.kind], budget)
    elif field.kind == "text" and wire == BYTES:
        yield value.decode()
    elif field.kind in _STRUCTS and wire == FIXED64:
        yield struct.unpack(_STRUCTS[field.kind], value)[0]
    elif wire == VARINT:
        yield _decode_integer(field.kind, value)
    elif field.many and wire == BYTES:
        at = 0
        while at < len(value):
            _spend(budget)
            one, at = _decode_varint(value, at)
            yield _decode_integer(field.kind, one)


def _decode_integer(kind: str, value: int) -> Any:
    if kind == "zigzag":
        return value >> 1 ^ -(value & 1)
    if kind == "integer":
        return value - (1 << 64) if value >> 63 else value
    return bool(value) if kind == "flag" else value


def _decode_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value & (1 << 64) - 1, at
        if shift > 63:
            raise IndexError(shift)


def _spend(budget: list[int]) -> None:
    budget[0] -= 1
    if budget[0] < 0:
        raise RefusalError("bad_request", f"The body contains more than {MAX_VALUES} fields.")
