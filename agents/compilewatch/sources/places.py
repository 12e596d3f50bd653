"""Places in the user's own code: the first frame that belongs neither to torch nor to an installed package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from compilewatch.sources.texts import short_path

_COMPILING_FILE = "torch/_dynamo/convert_frame.py"
_AHEAD_FILE = "torch/_dynamo/aot_compile.py"
COMPILING = ("code", "one_graph", "compiler_fn", "cache_size", "recompile_reason", "guarded_code", "graph_op_count")
"""The variables of torch's `_compile` that are read."""
_PACKAGE_FOLDERS = ("/site-packages/", "/dist-packages/")
_OWN_FOLDER = Path(__file__).resolve().parent.parent.as_posix() + "/"
_STANDARD_LIBRARY = Path(os.__file__).parent.as_posix() + "/"


class Place(NamedTuple):
    """A line of a function, with the file's path already cut for the wire."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


_known: dict[str, bool] = {}
"""What was asked before: the files of a stack are the same ones for each compilation."""
_MAX_KNOWN = 4096


def is_installed(filename: str) -> bool:
    known = _known.get(filename)
    if known is None:
        known = _is_installed(filename)
        if len(_known) < _MAX_KNOWN and "torch" in sys.modules:
            _known[filename] = known
    return known


def _is_installed(filename: str) -> bool:
    path = filename.replace("\\", "/")
    if any(folder in path for folder in _PACKAGE_FOLDERS):
        return True
    if path.startswith(("<frozen", "<eval_with_key", _OWN_FOLDER, _STANDARD_LIBRARY)):
        return True
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return torch is not None and path.startswith(Path(torch).parent.as_posix() + "/")


def user_place(frames: Iterable[tuple[str, int, str]]) -> Place | None:
    """The first of `(file, line, function)`, innermost first, outside torch and installed packages; else the innermost one."""
    found: tuple[str, int, str] | None = None
    for frame in frames:
        if not is_installed(frame[0]):
            found = frame
            break
        found = found or frame
    return None if found is None else Place(short_path(found[0]), *found[1:])


def compiling_locals() -> Mapping[str, Any]:
    """What torch's `_compile` on this thread knows of its compilation, seen from a hook that it calls; empty outside one. Its other
    variables hold tensors of the job and are left alone; of the code that it made only whether there is some is kept."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_compile" and frame.f_code.co_filename.replace("\\", "/").endswith(_COMPILING_FILE):
            known = frame.f_locals
            found = {name: known[name] for name in COMPILING if name in known}
            if "guarded_code" in found:
                found["guarded_code"] = found["guarded_code"] is not None
            return found
        if frame.f_code.co_name == "aot_compile_fullgraph" and frame.f_code.co_filename.replace("\\", "/").endswith(_AHEAD_FILE):
            return _ahead_locals(frame.f_locals)
        frame = frame.f_back
    return {}


def _ahead_locals(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same of `aot_compile`, which is asked for a function, a method or a module."""
    model = known.get("model")
    called = model if hasattr(model, "__code__") else getattr(type(model), "forward", None)
    return {"code": getattr(called, "__code__", None), "one_graph": True, "compiler_fn": known.get("backend")}


def calling_place() -> Place | None:
    """The user's innermost frame on this thread right now."""
    return user_place(_frames(sys._getframe(1)))


def _frames(frame: FrameType | None) -> Iterator[tuple[str, int, str]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
