"""Compile options of a frame: backend, mode, dynamic and fullgraph, read while torch compiles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from compilewatch.instrument.compile_mode import backend_of
from compilewatch.runtime.torch_internals import AUTOMATIC, STATIC_FIRST
from compilewatch.sources.dynamo.typed_getattr import get_text


class Options(NamedTuple):
    """Options under the names of `wire.messages.Compile`. Empty or None: unknown."""

    backend: str = ""
    mode: str = ""
    dynamic: str = ""
    fullgraph: bool | None = None


UNKNOWN_OPTIONS = Options()


def options_of(compiling: Mapping[str, Any]) -> Options:
    """Return the arguments of torch's `_compile`. Torch applies `dynamic` as a setting during the
    call."""
    if not compiling:
        return UNKNOWN_OPTIONS
    backend, mode = backend_of(compiling.get("compiler_fn"))
    fullgraph = compiling.get("one_graph")
    dynamic = _dynamic(STATIC_FIRST.find(), AUTOMATIC.find())
    return Options(backend, mode, dynamic, fullgraph if isinstance(fullgraph, bool) else None)


def options_of_record(record: Any) -> Options:
    """Return the options in torch's record of a compilation, which holds the settings during the
    call."""
    try:
        settings = json.loads(get_text(record, "dynamo_config") or "{}")
    except ValueError:
        return UNKNOWN_OPTIONS
    if not isinstance(settings, dict):
        return UNKNOWN_OPTIONS
    return Options(
        dynamic=_dynamic(settings.get(STATIC_FIRST.short_name), settings.get(AUTOMATIC.short_name))
    )


def _dynamic(static_first: Any, automatic: Any) -> str:
    if static_first is False:
        return "yes"
    return (
        {True: "automatic", False: "no"}.get(automatic, "") if isinstance(automatic, bool) else ""
    )
