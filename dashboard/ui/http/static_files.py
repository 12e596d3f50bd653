"""Static files as browsers take them: compressed once and kept in the process, with a tag of what
is in them."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.middleware.gzip import re_accepts_gzip
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]

from dashboard.ui.http.gzip import TEXT_TYPES

CACHE_CONTROL = "max-age=60, public"
"""Addresses hold no version, so a browser asks again after an upgrade; what it has already costs it
an answer without a body."""


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise has no types
    """Serves text from memory to whoever takes gzip, and leaves everything else, and development,
    to whitenoise."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        super().__init__(get_response)
        paths = (
            {}
            if self.autorefresh
            else {url: file.alternatives[-1][1] for url, file in self.files.items()}
        )
        self._text = {
            url: path for url, path in paths.items() if mimetypes.guess_type(path)[0] in TEXT_TYPES
        }

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """A pass through the rest of the dashboard for what is no file."""
        path = self._text.get(request.path_info)
        if (
            path is None
            or request.method not in ("GET", "HEAD")
            or not re_accepts_gzip.search(request.headers.get("Accept-Encoding", ""))
        ):
            answer: HttpResponseBase = super().__call__(request)
            return answer
        return _answer(request, path)


def _answer(request: HttpRequest, path: str) -> HttpResponse:
    body, tag, kind = _load_compressed(path)
    theirs = [
        one.removeprefix("W/") for one in parse_etags(request.headers.get("If-None-Match", ""))
    ]
    answer: HttpResponse
    if tag in theirs or "*" in theirs:
        answer = HttpResponseNotModified()
    else:
        answer = HttpResponse(b"" if request.method == "HEAD" else body, content_type=kind)
        answer["Content-Encoding"], answer["Content-Length"] = "gzip", str(len(body))
    answer["ETag"], answer["Cache-Control"], answer["Access-Control-Allow-Origin"] = (
        tag,
        CACHE_CONTROL,
        "*",
    )
    patch_vary_headers(answer, ["Accept-Encoding"])
    return answer


@cache
def _load_compressed(path: str) -> tuple[bytes, str, str]:
    """The compressed body, its tag and its type. All of them together are as large as what is
    installed, about 3 MB."""
    content, kind = Path(path).read_bytes(), mimetypes.guess_type(path)[0]
    tag = hashlib.sha256(content).hexdigest()[:20]
    return gzip.compress(content, 9, mtime=0), f'"{tag}-gzip"', f"{kind}; charset=utf-8"
