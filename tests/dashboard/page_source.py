"""Reader of the HTML of a page without the line breaks and the indentation of its template."""

from __future__ import annotations

import re

from django.http import HttpResponse
from django.http.response import HttpResponseBase

# A line break before or after these tags can be visible.
INLINE = {"a", "b", "bdi", "code", "del", "ins", "kbd", "small", "span", "strong", "time"}
_KEPT = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2>)", re.DOTALL)
_TAG = re.compile(r"<[a-z/!][^<>]*>", re.IGNORECASE)
_BREAK = re.compile(r"(<(/?[a-z][\w-]*)[^<>]*>)?\s*\n\s*(?=<(/?[a-z][\w-]*)|)", re.IGNORECASE)


def unwrap_html(html: str) -> str:
    """One space for each visible line break, nothing for the others."""
    parts = _KEPT.split(html)
    kept = {number for number in range(len(parts)) if number % 3 == 1}
    return "".join(
        part if number in kept else _unwrap_part(part)
        for number, part in enumerate(parts)
        if number % 3 != 2
    )


def _unwrap_part(html: str) -> str:
    tags = _TAG.sub(lambda tag: re.sub(r"\s*\n\s*", " ", tag[0]).replace(" >", ">"), html)
    return _BREAK.sub(_unwrap_break, tags)


def _unwrap_break(found: re.Match[str]) -> str:
    """A line break is visible in text, after the end of an inline element and before its start."""
    tag, before, after = found.groups()
    visible = (before is None or (before[0] == "/" and before[1:].lower() in INLINE)) and (
        after is None or after.lower() in INLINE
    )
    return (tag or "") + (" " if visible else "")


def unwrap_response(response: HttpResponseBase) -> None:
    """Unwraps the response in place; `sent` keeps the original content. Compressed and non-HTML
    responses are unchanged."""
    plain = isinstance(response, HttpResponse) and not response.has_header("Content-Encoding")
    if plain and response.headers.get("Content-Type", "").startswith("text/html"):
        assert isinstance(response, HttpResponse)
        response.sent = response.content  # type: ignore[attr-defined]
        response.content = unwrap_html(response.content.decode()).encode()
