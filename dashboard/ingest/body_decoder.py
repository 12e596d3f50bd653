"""Body decoder: turns the bytes of a request into JSON text of bounded size, depth and alphabet.
Pure code."""

from __future__ import annotations

import re
import zlib

from compilewatch.wire.messages import (
    MAX_DEPTH,
    MAX_INFLATE_RATIO,
    MAX_INFLATED_BYTES,
    MAX_TEXT,
    RATIO_CHECKED_AFTER,
)

STEP_BYTES = 64 << 10
MAX_STRINGS = 1 << 18
MAX_CONTAINERS = 1 << 18

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class RefusalError(Exception):
    """The whole request is refused with a code of the wire."""

    def __init__(self, code: str, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.code, self.detail, self.retry_after = code, detail, retry_after


def inflate(body: bytes) -> bytes:
    """Decompresses the one gzip member of the body. Stops at the first step above the limit of size
    or ratio."""
    stream, out, size, left = zlib.decompressobj(wbits=31), [], 0, body
    while not stream.eof:
        try:
            part = stream.decompress(left, STEP_BYTES)
        except zlib.error as error:
            raise RefusalError("bad_request", f"The body is not gzip: {error}.") from None
        left = stream.unconsumed_tail
        size += len(part)
        out.append(part)
        if size > MAX_INFLATED_BYTES:
            raise RefusalError(
                "too_large", f"The body is larger than {MAX_INFLATED_BYTES} bytes when inflated."
            )
        if size > RATIO_CHECKED_AFTER and size > MAX_INFLATE_RATIO * len(body):
            raise RefusalError(
                "too_large", f"The body inflates more than {MAX_INFLATE_RATIO} times."
            )
        if not (part or left or stream.eof):
            raise RefusalError("bad_request", "The gzip body is truncated.")
    if stream.unused_data:
        raise RefusalError("bad_request", "The body is not exactly one gzip member.")
    return b"".join(out)


def text_check(text: bytes) -> bool:
    """Checks the JSON text before it is decoded. Returns True if a string may exceed the wire's
    maximum length."""
    try:
        str(text, "utf-8")
    except UnicodeDecodeError as error:
        raise RefusalError(
            "not_json", f"The body is not UTF-8: {error.reason} at byte {error.start}."
        ) from None
    return _check_strings(text) if b"\\" in text else _check_plain(text)


def _check_plain(text: bytes) -> bool:
    """Checks text without escapes. Strings without brackets collapse to pairs of quotes, and only
    the brackets remain."""
    structure = text.translate(_AS_SQUARE, _NOT_STRUCTURE)
    brackets = structure.replace(b'""', b"")
    if b'"' in brackets or len(structure) - len(brackets) > 2 * MAX_STRINGS:
        return _check_strings(text)
    _check_depth(brackets)
    return _has_long_gap(text) and _check_strings(text)


def _has_long_gap(text: bytes) -> bool:
    """True if two neighbouring quotes are further apart than the maximum length of a string."""
    start, end = 0, len(text)
    while end - start > MAX_TEXT:
        start = text.rfind(b'"', start, start + MAX_TEXT + 1) + 1
        if not start:
            return True
    return False


def _check_strings(text: bytes) -> bool:
    plain = text.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in text else text
    if plain.count(b'"') > 2 * MAX_STRINGS:
        raise RefusalError("bad_request", f"The body contains more than {MAX_STRINGS} strings.")
    parts = plain.split(b'"')
    _check_depth(b"".join(parts[::2]).translate(_AS_SQUARE, _NOT_BRACKETS))
    return max(map(len, parts[1::2]), default=0) > MAX_TEXT


def _check_depth(brackets: bytes) -> None:
    """Removes the innermost pairs, level by level. Brackets that remain after the last allowed
    level are too deep or are not JSON."""
    if len(brackets) > 2 * MAX_CONTAINERS:
        raise RefusalError(
            "bad_request", f"The body contains more than {MAX_CONTAINERS} lists and objects."
        )
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return
    raise RefusalError(
        "bad_request",
        f"The body is nested deeper than {MAX_DEPTH} levels, or its brackets do not match.",
    )


def holds_nul(text: bytes) -> bool:
    """True if a string of the JSON text contains the character NUL, which no database stores."""
    return b"\\u0000" in text and _NUL.search(text) is not None
