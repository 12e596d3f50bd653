"""Whole numbers in few bytes: varints of seven bits, and runs of zeros as one number; what a sketch is stored as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

HEAD = Struct("<bddd")
"""Scale, sum, minimum and maximum, before the varints."""


def varints(numbers: Iterable[int]) -> bytes:
    """Each number in as many bytes as it has groups of seven bits."""
    out = bytearray()
    for number in numbers:
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)
    return bytes(out)


def numbers(data: bytes) -> Iterator[int]:
    """The numbers that `varints` wrote."""
    number = shift = 0
    for byte in data:
        if byte < 128:
            yield number | byte << shift
            number = shift = 0
        else:
            number |= (byte & 127) << shift
            shift += 7
    if shift:
        raise ValueError("the last number is cut off")


def zigzag(number: int) -> int:
    """A signed number as one that is not negative, small ones staying small."""
    return number * 2 if number >= 0 else -number * 2 - 1


def unzigzag(number: int) -> int:
    """The number that `zigzag` was given."""
    return -(number + 1) // 2 if number % 2 else number // 2


def runs(counts: Iterable[int]) -> Iterator[int]:
    """The counts, with each run of zeros as a zero and its length."""
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


def unrun(numbers: Iterable[int]) -> list[int]:
    """The counts that `runs` was given."""
    counts: list[int] = []
    pending = iter(numbers)
    for number in pending:
        if number:
            counts.append(number)
        else:
            counts.extend([0] * next(pending, 0))
    return counts
