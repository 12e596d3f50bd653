"""JSON codec: converts messages to JSON and back, driven only by the dataclasses."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
import zlib
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar

from compilewatch.wire.ack import Ack
from compilewatch.wire.clip import clip, clip_data
from compilewatch.wire.errors import Error
from compilewatch.wire.messages import (
    MAX_INFLATE_RATIO,
    MAX_INFLATED_BYTES,
    MAX_REASON,
    MAX_TEXT,
    RATIO_CHECKED_AFTER,
    Compile,
    Request,
)
from compilewatch.wire.sketch import Sketch

M = TypeVar("M")
Decoder = Callable[[Any, str], Any]

MAX_INT = (1 << 63) - 1

# Fields sent even at their default, because a reader recognises the message by them.
_ALWAYS_SENT = {
    Sketch: {"scale", "count", "sum", "min", "max", "offset", "bins"},
    Ack: {"cw", "commands"},
    Error: {"cw"},
}
_TEXT_LIMITS = {(Compile, "reason"): MAX_REASON}
_VERBATIM = {(Ack, "commands")}  # signed: cutting them would break the signature


class DecodeError(ValueError):
    """The data is not the expected message; the text names the field."""


def encode(message: Any) -> dict[str, Any]:
    """Converts the message to JSON types.

    Leaves out fields at their default and cuts texts to the wire's limits.
    """
    data = {}
    always_sent = _ALWAYS_SENT.get(type(message), ())
    for name, default in _fields(typing.cast(Hashable, type(message))):
        value = getattr(message, name)
        if name not in always_sent and value == default:
            continue
        place = (type(message), name)
        data[name] = (
            value if place in _VERBATIM else _plain(value, _TEXT_LIMITS.get(place, MAX_TEXT))
        )
    return data


def _plain(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, (list, tuple)):
        return (
            [_plain(item, limit) for item in value]
            if value and not isinstance(value[0], int)
            else list(value)
        )
    if dataclasses.is_dataclass(value):
        return encode(value)
    if isinstance(value, dict):
        return {
            clip(str(key)): _plain(item, limit) if isinstance(item, tuple) else clip_data(item)
            for key, item in value.items()
        }
    return value


@cache
def _fields(cls: Hashable) -> list[tuple[str, Any]]:
    """Returns each field with its default; the default of a required field equals no value."""
    pairs = []
    for item in dataclasses.fields(typing.cast(Any, cls)):
        if item.default is not dataclasses.MISSING:
            pairs.append((item.name, item.default))
        elif item.default_factory is not dataclasses.MISSING:
            pairs.append((item.name, item.default_factory()))
        else:
            pairs.append((item.name, dataclasses.MISSING))
    return pairs


def decode(cls: type[M], data: Any, where: str = "") -> M:
    """Decodes a message.

    Ignores unknown fields; raises a DecodeError that names a wrong field.
    """
    if not isinstance(data, dict):
        raise DecodeError(f"{where or 'the message'}: expected an object, got {_kind(data)}")
    values = {}
    for name, required, decoder in _decoders(typing.cast(Hashable, cls)):
        path = f"{where}.{name}" if where else name
        if name in data:
            values[name] = decoder(data[name], path)
        elif required:
            raise DecodeError(f"{path}: is missing")
    return cls(**values)


@cache
def _decoders(cls: Hashable) -> list[tuple[str, bool, Decoder]]:
    hints = typing.get_type_hints(cls)
    return [
        (name, default is dataclasses.MISSING, _decoder(hints[name]))
        for name, default in _fields(cls)
    ]


def _decoder(hint: Any) -> Decoder:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if dataclasses.is_dataclass(hint):
        return lambda value, path: decode(typing.cast(type, hint), value, path)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        inner = _decoder(next(arg for arg in args if arg is not type(None)))
        return lambda value, path: None if value is None else inner(value, path)
    if origin is list:
        return _list_decoder(_decoder(args[0]))
    if origin is tuple:
        return _tuple_decoder([_decoder(arg) for arg in args])
    if origin is dict:
        return _dict_decoder(_decoder(args[1]))
    raise TypeError(f"the wire has no type {hint!r}")


def _list_decoder(inner: Decoder) -> Decoder:
    def read(value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise DecodeError(f"{path}: expected a list, got {_kind(value)}")
        return [inner(item, f"{path}[{i}]") for i, item in enumerate(value)]

    return read


def _tuple_decoder(inner: list[Decoder]) -> Decoder:
    def read(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(inner):
            raise DecodeError(f"{path}: expected a list of {len(inner)}, got {_kind(value)}")
        return tuple(
            one(item, f"{path}[{i}]")
            for i, (one, item) in enumerate(zip(inner, value, strict=True))
        )

    return read


def _dict_decoder(inner: Decoder) -> Decoder:
    def read(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise DecodeError(f"{path}: expected an object, got {_kind(value)}")
        return {key: inner(item, f"{path}.{clip(key, 64)}") for key, item in value.items()}

    return read


def _read_int(value: Any, path: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise DecodeError(f"{path}: expected a whole number, got {_kind(value)}")
    if not -MAX_INT <= value <= MAX_INT:
        raise DecodeError(f"{path}: the number does not fit into 64 bits")
    return value


def _read_float(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DecodeError(f"{path}: expected a number, got {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise DecodeError(f"{path}: expected a finite number")
    return number


def _read_str(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise DecodeError(f"{path}: expected text, got {_kind(value)}")
    return value


def _read_bool(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise DecodeError(f"{path}: expected true or false, got {_kind(value)}")
    return value


_SCALARS: dict[Any, Decoder] = {
    int: _read_int,
    float: _read_float,
    str: _read_str,
    bool: _read_bool,
    Any: lambda value, path: value,
}
_KINDS = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def dumps(message: Any) -> bytes:
    """Encodes the message as the bytes of its JSON."""
    return json.dumps(encode(message), separators=(",", ":"), allow_nan=False).encode()


def loads(cls: type[M], body: bytes) -> M:
    """Decodes a message from the bytes of a JSON document."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the body is not JSON: {error}") from None
    return decode(cls, data)


def dumps_request(request: Request) -> bytes:
    """Encodes the body of a POST as compressed JSON; equal requests give equal bytes."""
    return deflate(dumps(request))


def deflate(body: bytes) -> bytes:
    """Compresses the body with gzip and without a time stamp, so that equal bodies give equal
    bytes.

    Keeps the ratio below the wire's limit.
    """
    packed = _packed(body)
    if len(body) <= MAX_INFLATE_RATIO * len(packed):
        return packed
    # Sketches with many empty bins compress so well that they exceed the ratio limit. Huffman codes
    # without matches compress at most 8 times.
    return _packed(body, zlib.Z_HUFFMAN_ONLY)


def _packed(body: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    stream = zlib.compressobj(level=6, wbits=31, strategy=strategy)
    return stream.compress(body) + stream.flush()


def inflate(body: bytes, limit: int = MAX_INFLATED_BYTES) -> bytes:
    """Decompresses the one gzip member of the body, up to `limit` and the wire's ratio limit."""
    stream = zlib.decompressobj(wbits=31)
    try:
        out = stream.decompress(body, limit + 1)
    except zlib.error as error:
        raise DecodeError(f"the body is not gzip: {error}") from None
    if len(out) > limit:
        raise DecodeError(f"the decompressed body is larger than {limit} bytes")
    if len(out) > RATIO_CHECKED_AFTER and len(out) > MAX_INFLATE_RATIO * len(body):
        raise DecodeError(f"the body decompresses to more than {MAX_INFLATE_RATIO} times its size")
    if not stream.eof or stream.unused_data:
        raise DecodeError("the body is not exactly one gzip member")
    return out
