"""Text scrubber: removes private and unstable parts from torch's messages.

The removed parts are source lines, string arguments, addresses, absolute paths and long numbers."""

from __future__ import annotations

import importlib
import os
import re
import sys

from compilewatch.sources.dynamo.notebook_cells import cell_of
from compilewatch.wire.messages import MAX_REASON, MAX_TEXT

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")
_LONG_NUMBER = re.compile(r"(?<![\w.])(?:\d+\.\d{4,}(?:e[+-]?\d+)?|\d{4,})(?![\w])")
_PATH = re.compile(r"(?<![\w.:])/(?:[^\s'\"<>:,()\[\]]+/)+[^\s'\"<>:,()\[\]]*")
_COMPILE_ID = re.compile(r"^\[?((?:!?\d+/)?\d+/\d+)(?:_\d+)?\]?:\s*")
_EXPECTED = re.compile(r"expected (requires_grad=)?.+?(?:, (actual|got) .+)?$")
_CLASS = re.compile(r"<class '[^']*'>")
_BETWEEN = re.compile(r"^(\* <=? .+) <=? \*$")
_KEYS = re.compile(r"== \[.*\]$")
_QUOTED = r"""'(?:[^'\\]|\\.?)*(?:'|$)|"(?:[^"\\]|\\.?)*(?:"|$)"""
"""A string as Python prints it. A truncated string has no closing quote."""
_LITERAL = rf"-?\d[\w.+-]*|#|{_QUOTED}"
_COMPARED = re.compile(rf"([=!<>]=|[<>]) (?:{_LITERAL})(?![\w'\"])")
_STRING_OPERAND = re.compile(rf"([=!]=) (?:{_QUOTED}|(?:frozenset\(|\{{).*$)")
_COMPARING = re.compile(rf"^(?:{_LITERAL}) ([=!<>]=|[<>]) ")
_RELATION = re.compile(r"\b(Eq|Ne|Lt|Le|Gt|Ge)\((.*), -?\d+\)")
_BACKENDS = ". Cached backend:"
_BREAK_PAGE = re.compile(r"/gb/gb(\d+)\.html")
_SPACES = re.compile(r"\s+")
_PACKAGE_FOLDERS = ("site-packages/", "dist-packages/")


def shorten_path(path: str) -> str:
    """Return the path relative to its package or the working directory. A temporary file loses its
    folder; a file of a notebook becomes its cell."""
    cell = cell_of(path)
    if cell:
        return cell
    path = path.replace(os.sep, "/")
    for marker in _PACKAGE_FOLDERS:
        _, found, tail = path.rpartition(marker)
        if found:
            return tail
    for root in (os.getcwd(), *sys.path):  # noqa: PTH109 - Path is ten times slower
        folder = root.replace(os.sep, "/").rstrip("/") + "/"
        if len(folder) > 1 and path.startswith(folder):
            return path[len(folder) :]
    # Torch has already loaded `tempfile`; a job without torch does not need the module.
    temporary: str = importlib.import_module("tempfile").gettempdir()
    if path.startswith(temporary.replace(os.sep, "/") + "/"):
        return "<tmp>/" + path.rpartition("/")[2]
    return path.rpartition("/")[2]


def normalize(text: str, limit: int = MAX_TEXT) -> str:
    """Return one line that is equal in all processes for the same cause."""
    text = _ADDRESS.sub("0x*", text[: 4 * MAX_REASON])
    text = _PATH.sub(lambda match: shorten_path(match.group()), text)
    text = _LONG_NUMBER.sub("#", text)
    return _SPACES.sub(" ", text).strip()[:limit]


def compile_id_in(reason: str) -> str:
    """Return the compile ID of the cache entry that did not match; empty if the reason has none."""
    found = _COMPILE_ID.match(reason.strip())
    return found[1] if found else ""


def guard_line(reason: str) -> str:
    """Return the failed guard as torch prints it, without the user's source line and the hint
    after `#`."""
    return _COMPILE_ID.sub("", reason.strip().split("\n", 1)[0].split("  #", 1)[0]).strip()


def guard_reason(reason: str) -> str:
    """Return why a guard failed, without string arguments; empty for a first compilation."""
    line = guard_line(reason)
    return normalize(_STRING_OPERAND.sub(r"\1 *", line), MAX_REASON) if line else ""


def guard_group(reason: str) -> str:
    """Return the failed guard without values, classes and objects. This text groups recompiles."""
    text = guard_reason(reason).partition(_BACKENDS)[0]
    if not text:
        return ""
    if " mismatch" in text or "tensor '" in text:
        text = _EXPECTED.sub(_mask_expected, text)
    text = _COMPARED.sub(
        r"\1 *", _COMPARING.sub(r"* \1 ", _KEYS.sub("== [*]", _CLASS.sub("<class *>", text)))
    )
    return _RELATION.sub(r"\1(\2, *)", _BETWEEN.sub(r"\1", text))[:MAX_TEXT]


def _mask_expected(found: re.Match[str]) -> str:
    """Replace the expected and the actual value of a tensor guard with `*`."""
    return f"expected {found[1] or ''}*" + (f", {found[2]} *" if found[2] else "")


def break_reason(reason: str) -> str:
    """Return the cause of a graph break: torch's ID if known, the first line and the explanation,
    without hints and developer context."""
    lines = [line.strip() for line in reason.strip().splitlines()]
    first = lines[0] if lines else ""
    explanations = [line for line in lines[1:] if line.startswith("Explanation:")]
    page = _BREAK_PAGE.search(reason)
    known = f"GB{page[1]} {first}" if page else first
    return normalize(f"{known}. {explanations[0]}" if explanations else known)


def error_reason(reason: str) -> str:
    """Return the error text before torch's quote of the user's code."""
    return normalize(
        reason.split("from user code", 1)[0].split("Traceback (most recent call last)", 1)[0]
    )
