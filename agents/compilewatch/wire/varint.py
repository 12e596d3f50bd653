"""Varint and run-length encoding of integers: the storage format of sketches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

HEAD = Struct("<bddd")
"""Scale, sum, minimum and maximum; the varints follow."""


def encode_varints(numbers: Iterable[int]) -> bytes:
    """Encodes each number with seven bits per byte, least significant group first."""
    out = bytearray()
    for number in numbers:
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)
    return bytes(out)


def decode_varints(data: bytes) -> Iterator[int]:
    """Decodes varints."""
    number = shift = 0
    for byte in data:
        if byte < 128:
            yield number | byte << shift
            number = shift = 0
        else:
            number |= (byte & 127) << shift
            shift += 7
    if shift:
        raise ValueError("the last number is incomplete")


def zigzag(number: int) -> int:
    """Maps a signed number to a non-negative one; small numbers stay small."""
    return number * 2 if number >= 0 else -number * 2 - 1


def unzigzag(number: int) -> int:
    """Inverts `zigzag`."""
    return -(number + 1) // 2 if number % 2 else number // 2


def encode_runs(counts: Iterable[int]) -> Iterator[int]:
    """Run-length encodes zeros: each run becomes a zero and its length."""
    empty = 0
    for count in counts:
        if count:
            if empty:
                yield 0
                yield empty
                empty = 0
            yield count
        else:
            empty += 1
    if empty:
        yield 0
        yield empty


def decode_runs(numbers: Iterable[int]) -> list[int]:
    """Inverts `runs`."""
    counts: list[int] = []
    pending = iter(numbers)
    for number in pending:
        if number:
            counts.append(number)
        else:
            counts.extend([0] * next(pending, 0))
    return counts
