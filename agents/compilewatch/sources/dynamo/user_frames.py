"""Stack inspection: finds the user's frame and torch's compiling frame on a stack.

A user frame belongs neither to torch nor to an installed package."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType, MethodType
from typing import Any, NamedTuple

from compilewatch.runtime.torch_internals import MODULE
from compilewatch.sources.dynamo.scrubber import shorten_path

_COMPILE = "_compile"
_COMPILERS = {
    _COMPILE: "torch/_dynamo/convert_frame.py",
    "aot_compile_fullgraph": "torch/_dynamo/aot_compile.py",
}
"""Torch's functions that compile, and their files."""
COMPILE_VARIABLES = (
    "code",
    "one_graph",
    "compiler_fn",
    "cache_size",
    "recompile_reason",
    "reasons",
    "guarded_code",
    "graph_op_count",
)
"""Local variables of torch's `_compile` that the agent reads."""
_PACKAGE_FOLDERS = ("/site-packages/", "/dist-packages/")
_OWN_FOLDER = Path(__file__).resolve().parents[2].as_posix() + "/"
_CHILD = "from multiprocessing."
_STANDARD_LIBRARY = Path(os.__file__).parent.as_posix() + "/"


class Place(NamedTuple):
    """A line of a function. The path is already shortened for the wire."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


_installed_by_file: dict[str, bool] = {}
"""Cache of `is_installed`: all compilations have mostly the same files on the stack."""
_MAX_FILES = 4096


def is_installed(filename: str) -> bool:
    known = _installed_by_file.get(filename)
    if known is None:
        known = _check_installed(filename)
        if len(_installed_by_file) < _MAX_FILES and "torch" in sys.modules:
            _installed_by_file[filename] = known
    return known


def _check_installed(filename: str) -> bool:
    path = filename.replace("\\", "/")
    if any(folder in path for folder in _PACKAGE_FOLDERS):
        return True
    if path.startswith(("<frozen", "<eval_with_key", _OWN_FOLDER, _STANDARD_LIBRARY)):
        return True
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return torch is not None and path.startswith(Path(torch).parent.as_posix() + "/")


def find_user_place(frames: Iterable[tuple[str, int, str]]) -> Place | None:
    """Return the first user frame of `(file, line, function)`, innermost first. Without a user
    frame, return the innermost frame."""
    innermost: tuple[str, int, str] | None = None
    for frame in frames:
        if not is_installed(frame[0]) and not _is_child_start(frame):
            return _make_place(frame)
        innermost = innermost or frame
    return None if innermost is None else _make_place(innermost)


def _make_place(frame: tuple[str, int, str]) -> Place:
    return Place(shorten_path(frame[0]), *frame[1:])


def _is_child_start(frame: tuple[str, int, str]) -> bool:
    """True for the command with which `multiprocessing` starts a child: `-c "from
    multiprocessing.spawn import spawn_main; ..."`."""
    return (
        frame[0] == "<string>"
        and frame[2] == "<module>"
        and any(word.startswith(_CHILD) for word in sys.orig_argv)
    )


def find_compiling_frame() -> FrameType | None:
    """Return the frame of torch's `_compile` on this thread; None outside a compilation."""
    frame = _compiling_frame()
    return frame if frame is not None and frame.f_code.co_name == _COMPILE else None


def read_compiling_locals() -> Mapping[str, Any]:
    """Return the local variables of torch's `_compile` on this thread; empty outside a compilation.

    A hook that `_compile` calls uses this function. The result holds only the variables in
    COMPILING: other variables hold tensors of the job. Modules are added as weak references;
    `guarded_code` is reduced to a bool."""
    frame = _compiling_frame()
    if frame is None:
        return {}
    if frame.f_code.co_name != _COMPILE:
        return _read_ahead_locals(frame.f_locals)
    known = frame.f_locals
    found = {name: known[name] for name in COMPILE_VARIABLES if name in known}
    found["modules"] = find_modules(known.get("locals"), found.get("code"))
    if "guarded_code" in found:
        found["guarded_code"] = found["guarded_code"] is not None
    return found


def read_compiled_locals() -> Mapping[str, Any]:
    """Return the variables of the function that torch's `_compile` on this thread compiles. The
    variables belong to the job: callers read them and keep none."""
    frame = _compiling_frame()
    found = (
        None if frame is None or frame.f_code.co_name != _COMPILE else frame.f_locals.get("locals")
    )
    return found if isinstance(found, Mapping) else {}


def _compiling_frame() -> FrameType | None:
    """Return the innermost frame of a compiling torch function on this thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        ends = _COMPILERS.get(frame.f_code.co_name)
        if ends is not None and frame.f_code.co_filename.replace("\\", "/").endswith(ends):
            return frame
        frame = frame.f_back
    return None


def find_modules(variables: Any, code: Any) -> dict[int, tuple[weakref.ref[Any], bool]]:
    """Return weak references to the modules among the variables of a frame, including owners of
    methods. The bool is True if `code` is the module's forward."""
    module_class = MODULE.find()
    if not isinstance(variables, dict) or not isinstance(module_class, type):
        return {}
    bound = [
        value.__self__ if isinstance(value, MethodType) else value for value in variables.values()
    ]
    found = [value for value in bound if isinstance(value, module_class)]
    return {
        id(module): (
            weakref.ref(module),
            getattr(getattr(type(module), "forward", None), "__code__", None) is code,
        )
        for module in found
    }


def _read_ahead_locals(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the same variables for `aot_compile`, whose model is a function, a method or a
    module."""
    model = known.get("model")
    called = model if hasattr(model, "__code__") else getattr(type(model), "forward", None)
    return {
        "code": getattr(called, "__code__", None),
        "one_graph": True,
        "compiler_fn": known.get("backend"),
    }


def find_caller() -> Place | None:
    """Return the innermost user frame of this thread, or the innermost frame if there is none."""
    return find_user_place(_iterate_frames(sys._getframe(1)))


def find_user_caller() -> Place | None:
    """Return the innermost user frame of this thread; None if there is none, as in a process that
    an engine starts."""
    frames = (
        frame
        for frame in _iterate_frames(sys._getframe(1))
        if not is_installed(frame[0]) and not _is_child_start(frame)
    )
    return next((_make_place(frame) for frame in frames), None)


def is_vllm_file(filename: str) -> bool:
    """True for a file of vLLM. vLLM compiles its models itself, without a call in user code."""
    engine = getattr(sys.modules.get("vllm"), "__file__", None)
    if not isinstance(engine, str):
        return False
    return filename.startswith(os.path.join(os.path.dirname(engine), ""))  # noqa: PTH118, PTH120


def _iterate_frames(frame: FrameType | None) -> Iterator[tuple[str, int, str]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
