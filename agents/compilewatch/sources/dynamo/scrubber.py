"""What a text from torch may say once it leaves the process: no source lines, no addresses, no absolute paths, no long numbers."""

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
"""As Python prints a text; one that was cut off has no end."""
_LITERAL = rf"-?\d[\w.+-]*|#|{_QUOTED}"
_COMPARED = re.compile(rf"([=!<>]=|[<>]) (?:{_LITERAL})(?![\w'\"])")
_TOLD = re.compile(rf"([=!]=) (?:{_QUOTED}|(?:frozenset\(|\{{).*$)")
_COMPARING = re.compile(rf"^(?:{_LITERAL}) ([=!<>]=|[<>]) ")
_RELATION = re.compile(r"\b(Eq|Ne|Lt|Le|Gt|Ge)\((.*), -?\d+\)")
_BACKENDS = ". Cached backend:"
_BREAK_PAGE = re.compile(r"/gb/gb(\d+)\.html")
_SPACES = re.compile(r"\s+")
_PACKAGE_FOLDERS = ("site-packages/", "dist-packages/")


def short_path(path: str) -> str:
    """A file's path from its package or the working folder on; temporary files lose their folder, and a notebook's become cells."""
    cell = cell_of(path)
    if cell:
        return cell
    path = path.replace(os.sep, "/")
    for marker in _PACKAGE_FOLDERS:
        _, found, tail = path.rpartition(marker)
        if found:
            return tail
    for root in (os.getcwd(), *sys.path):  # noqa: PTH109 - a Path takes ten times as long
        folder = root.replace(os.sep, "/").rstrip("/") + "/"
        if len(folder) > 1 and path.startswith(folder):
            return path[len(folder) :]
    temporary: str = importlib.import_module(
        "tempfile"
    ).gettempdir()  # torch has loaded it, and a job without torch needs it not
    if path.startswith(temporary.replace(os.sep, "/") + "/"):
        return "<tmp>/" + path.rpartition("/")[2]
    return path.rpartition("/")[2]


def normal(text: str, limit: int = MAX_TEXT) -> str:
    """One line that reads the same in every process that met the same thing."""
    text = _ADDRESS.sub("0x*", text[: 4 * MAX_REASON])
    text = _PATH.sub(lambda match: short_path(match.group()), text)
    text = _LONG_NUMBER.sub("#", text)
    return _SPACES.sub(" ", text).strip()[:limit]


def compile_id_in(reason: str) -> str:
    """The compilation whose cache entry did not match; empty where the reason names none."""
    found = _COMPILE_ID.match(reason.strip())
    return found[1] if found else ""


def guard_line(reason: str) -> str:
    """The guard that failed as torch has it, without what torch appends after `#`: the user's source line and a hint."""
    return _COMPILE_ID.sub("", reason.strip().split("\n", 1)[0].split("  #", 1)[0]).strip()


def guard_reason(reason: str) -> str:
    """Why a guard failed. A text that an argument was stays in the process."""
    line = guard_line(reason)
    return (
        normal(_TOLD.sub(r"\1 *", line), MAX_REASON) if line else ""
    )  # a first compilation has no reason


def guard_group(reason: str) -> str:
    """The guard that failed, whatever value, class or object it met: the text that groups recompiles."""
    text = guard_reason(reason).partition(_BACKENDS)[0]
    if not text:
        return ""
    if " mismatch" in text or "tensor '" in text:
        text = _EXPECTED.sub(_expected, text)
    text = _COMPARED.sub(
        r"\1 *", _COMPARING.sub(r"* \1 ", _KEYS.sub("== [*]", _CLASS.sub("<class *>", text)))
    )
    return _RELATION.sub(r"\1(\2, *)", _BETWEEN.sub(r"\1", text))[:MAX_TEXT]


def _expected(found: re.Match[str]) -> str:
    """What a guard on a tensor expected, and what came, without the values."""
    return f"expected {found[1] or ''}*" + (f", {found[2]} *" if found[2] else "")


def break_reason(reason: str) -> str:
    """What broke the graph: torch's id for it where it has one, its first line and its explanation, without hints and developer context."""
    lines = [line.strip() for line in reason.strip().splitlines()]
    first = lines[0] if lines else ""
    explanations = [line for line in lines[1:] if line.startswith("Explanation:")]
    page = _BREAK_PAGE.search(reason)
    known = f"GB{page[1]} {first}" if page else first
    return normal(f"{known}. {explanations[0]}" if explanations else known)


def error_reason(reason: str) -> str:
    """What failed: the text before torch quotes the user's code."""
    return normal(
        reason.split("from user code", 1)[0].split("Traceback (most recent call last)", 1)[0]
    )
