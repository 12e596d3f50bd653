"""Varints: vectorised form of `compilewatch.wire.varint`, seven bits per byte."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def decode_varints(tails: NDArray[np.uint8], lengths: Ints) -> tuple[Ints, Ints]:
    """Return the decoded integers of all rows, and their number per row.

    Raises ValueError if a row has fewer than two integers or is truncated.
    """
    ends = np.flatnonzero(tails < 128)
    rows_end = np.cumsum(lengths)
    up_to = np.searchsorted(ends, rows_end, side="left")
    counts = np.diff(up_to, prepend=0)
    if np.any(counts < 2) or not np.array_equal(ends[up_to - 1], rows_end - 1):
        raise ValueError("a packed sketch is truncated")
    values = tails[ends].astype(np.int64)
    # The last byte of an integer holds its highest bits. Most integers have one byte only, so the
    # loop continues with the longer ones.
    first = np.concatenate(([0], ends[:-1] + 1))
    longer = np.flatnonzero(ends > first)
    at, first = ends[longer], first[longer]
    while len(longer):
        at = at - 1
        values[longer] = (values[longer] << 7) | (tails[at] & 127)
        more = at > first
        longer, at, first = longer[more], at[more], first[more]
    return values, counts


def encode_varints(numbers: Ints) -> tuple[bytes, Ints]:
    """Return the encoded integers, and the offset of each integer plus the total length."""
    size = np.ones(len(numbers), np.int64)
    for bits in range(7, 63, 7):
        more = numbers >= (1 << bits)
        if not more.any():
            break
        size += more
    places = np.concatenate(([0], np.cumsum(size)))
    out = np.zeros(int(places[-1]), np.uint8)
    for group in range(int(size.max()) if len(size) else 0):
        has = size > group
        more = np.where(size[has] > group + 1, 128, 0)
        out[places[:-1][has] + group] = ((numbers[has] >> (7 * group)) & 127) | more
    return out.tobytes(), places
