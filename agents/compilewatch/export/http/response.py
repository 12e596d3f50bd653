"""The answer to one request, read by hand: `http.client` would load `ssl` and `email` with it, which cost a plain job 2 MiB."""

from __future__ import annotations

import re
from io import BufferedReader
from typing import NamedTuple

MAX_ANSWER = 64 << 10
"""Bytes of an answer, its headers included."""

_INTERIM = (100, 102, 103)
"""What may come before the answer itself."""
_STATUS = re.compile(rb"HTTP/\d\.\d ([1-9]\d\d)(?: .*)?", re.DOTALL)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(
    rf"(?:\w+, *)?(\d\d?)[ -]({'|'.join(_MONTHS)})[ -](\d{{4}}) +(\d\d):(\d\d):(\d\d)(?: +(?:GMT|UTC?|[+-]0000))?",
    re.ASCII,
)
_DAYS_BEFORE_1970 = 719_162


class AnswerError(OSError):
    """What came is no answer, was cut off, or is too long."""


class HttpAnswer(NamedTuple):
    """Names of headers are in small letters; of those that came twice the first counts."""

    status: int
    headers: dict[str, str]


def head_read(reader: BufferedReader) -> HttpAnswer:
    """Status and headers; raises OSError. Who gives the bytes bounds them."""
    while (status := _status(reader)) in _INTERIM:
        _headers(reader)
    return HttpAnswer(status, _headers(reader))


def body_read(reader: BufferedReader, answer: HttpAnswer) -> bytes:
    """The whole body; raises OSError."""
    if answer.status < 200 or answer.status in (204, 304):
        return b""
    if answer.headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunks(reader)
    length = answer.headers.get("content-length", "")
    return (
        _exactly(reader, int(length[:20]))
        if length.isascii() and length.isdigit()
        else reader.read()
    )


def _line(reader: BufferedReader) -> bytes:
    line = reader.readline()
    if not line.endswith(b"\n"):
        raise AnswerError(
            "the connection ended in the middle of an answer"
            if line
            else "the connection ended without an answer"
        )
    return line.rstrip(b"\r\n")


def _status(reader: BufferedReader) -> int:
    line = _line(reader)
    found = _STATUS.fullmatch(line)
    if found is None:
        raise AnswerError(f"an answer that is not HTTP: {line[:50]!r}")
    return int(found[1])


def _headers(reader: BufferedReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    while line := _line(reader):
        name, _, value = line.decode("latin-1").partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return headers


def _chunks(reader: BufferedReader) -> bytes:
    parts = []
    while size := _size(_line(reader)):
        parts.append(_exactly(reader, size))
        if _line(reader):
            raise AnswerError("a chunk of an answer is longer than it says")
    return b"".join(parts)  # what may follow the last one is not waited for


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{1,16}", digits):
        raise AnswerError(f"a chunk of an answer has no size: {line[:50]!r}")
    return int(digits, 16)


def _exactly(reader: BufferedReader, length: int) -> bytes:
    data = reader.read(
        min(length, MAX_ANSWER + 1)
    )  # an honest size: memory is taken before the bytes come
    if len(data) < length:
        raise AnswerError(f"an answer ended after {len(data)} of {length} bytes")
    return data


def unix_of(date: str) -> float | None:
    """A date as HTTP writes it, in Unix seconds; None for anything else."""
    found = _DATE.fullmatch(date.strip())
    if found is None:
        return None
    day, year, *clock = (int(found[number]) for number in (1, 3, 4, 5, 6))
    # Years that begin in March have their odd day at the end.
    month = _MONTHS.index(found[2]) + 1
    year, month = (year - 1, month + 12) if month < 3 else (year, month)
    days = (
        365 * year
        + year // 4
        - year // 100
        + year // 400
        + (153 * month - 457) // 5
        + day
        - 307
        - _DAYS_BEFORE_1970
    )
    return float(days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2])
