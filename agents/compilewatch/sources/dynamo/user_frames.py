"""Places in the user's own code: the first frame that belongs neither to torch nor to an installed package."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType, MethodType
from typing import Any, NamedTuple

from compilewatch.runtime.torch_internals import MODULE
from compilewatch.sources.dynamo.scrubber import short_path

_COMPILE = "_compile"
_COMPILERS = {
    _COMPILE: "torch/_dynamo/convert_frame.py",
    "aot_compile_fullgraph": "torch/_dynamo/aot_compile.py",
}
"""The functions of torch that compile, and the files that they are in."""
COMPILING = (
    "code",
    "one_graph",
    "compiler_fn",
    "cache_size",
    "recompile_reason",
    "reasons",
    "guarded_code",
    "graph_op_count",
)
"""The variables of torch's `_compile` that are read."""
_PACKAGE_FOLDERS = ("/site-packages/", "/dist-packages/")
_OWN_FOLDER = Path(__file__).resolve().parents[2].as_posix() + "/"
_CHILD = "from multiprocessing."
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
    innermost: tuple[str, int, str] | None = None
    for frame in frames:
        if not is_installed(frame[0]) and not _starts_a_child(frame):
            return _placed(frame)
        innermost = innermost or frame
    return None if innermost is None else _placed(innermost)


def _placed(frame: tuple[str, int, str]) -> Place:
    return Place(short_path(frame[0]), *frame[1:])


def _starts_a_child(frame: tuple[str, int, str]) -> bool:
    """Whether it is the command that `multiprocessing` starts a child by, `-c "from multiprocessing.spawn import spawn_main; ..."`."""
    return (
        frame[0] == "<string>"
        and frame[2] == "<module>"
        and any(word.startswith(_CHILD) for word in sys.orig_argv)
    )


def compiling_frame() -> FrameType | None:
    """The frame of torch's `_compile` on this thread; None outside one."""
    frame = _compiling_frame()
    return frame if frame is not None and frame.f_code.co_name == _COMPILE else None


def compiling_locals() -> Mapping[str, Any]:
    """What torch's `_compile` on this thread knows of its compilation, seen from a hook that it calls; empty outside one. Its other
    variables hold tensors of the job and are left alone, but modules are referred to weakly; of the code that it made only whether there
    is some is kept."""
    frame = _compiling_frame()
    if frame is None:
        return {}
    if frame.f_code.co_name != _COMPILE:
        return _ahead_locals(frame.f_locals)
    known = frame.f_locals
    found = {name: known[name] for name in COMPILING if name in known}
    found["modules"] = modules_among(known.get("locals"), found.get("code"))
    if "guarded_code" in found:
        found["guarded_code"] = found["guarded_code"] is not None
    return found


def compiled_locals() -> Mapping[str, Any]:
    """The variables of the function that torch's `_compile` on this thread compiles: the job's own, to be looked at and never kept."""
    frame = _compiling_frame()
    found = (
        None if frame is None or frame.f_code.co_name != _COMPILE else frame.f_locals.get("locals")
    )
    return found if isinstance(found, Mapping) else {}


def _compiling_frame() -> FrameType | None:
    """The innermost frame on this thread that compiles for torch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        ends = _COMPILERS.get(frame.f_code.co_name)
        if ends is not None and frame.f_code.co_filename.replace("\\", "/").endswith(ends):
            return frame
        frame = frame.f_back
    return None


def modules_among(variables: Any, code: Any) -> dict[int, tuple[weakref.ref[Any], bool]]:
    """The modules among the variables of a frame, or whose methods are, weakly, and of each whether the frame is its own forward."""
    module_class = MODULE.find()
    if not isinstance(variables, dict) or not isinstance(module_class, type):
        return {}
    bound = [
        value.__self__ if isinstance(value, MethodType) else value for value in variables.values()
    ]
    found = [value for value in bound if isinstance(value, module_class)]
    return {
        id(one): (
            weakref.ref(one),
            getattr(getattr(type(one), "forward", None), "__code__", None) is code,
        )
        for one in found
    }


def _ahead_locals(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same of `aot_compile`, which is asked for a function, a method or a module."""
    model = known.get("model")
    called = model if hasattr(model, "__code__") else getattr(type(model), "forward", None)
    return {
        "code": getattr(called, "__code__", None),
        "one_graph": True,
        "compiler_fn": known.get("backend"),
    }


def calling_place() -> Place | None:
    """The user's innermost frame on this thread right now."""
    return user_place(_frames(sys._getframe(1)))


def users_place() -> Place | None:
    """The same; None where all frames are torch's or of installed packages, as in a process that an engine starts."""
    frames = (
        frame
        for frame in _frames(sys._getframe(1))
        if not is_installed(frame[0]) and not _starts_a_child(frame)
    )
    return next((_placed(frame) for frame in frames), None)


def is_engines(filename: str) -> bool:
    """Whether it is a file of vLLM, which compiles its models by itself: no line of the user's leads to one of them."""
    engine = getattr(sys.modules.get("vllm"), "__file__", None)
    if not isinstance(engine, str):
        return False
    return filename.startswith(os.path.join(os.path.dirname(engine), ""))  # noqa: PTH118, PTH120


def _frames(frame: FrameType | None) -> Iterator[tuple[str, int, str]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
