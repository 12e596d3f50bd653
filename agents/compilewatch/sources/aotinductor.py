"""AOTInductor packages: compiled elsewhere, so that here there is nothing to compile; what loading one took is a mark on the time line."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from compilewatch.guard import Guard
from compilewatch.recorder import Recorder
from compilewatch.sources import Answer, Source
from compilewatch.sources.torch_names import LOAD_PACKAGE


class AotInductor(Source):
    """Binds the loader that `torch._inductor.aoti_load_package` calls."""

    name = "aotinductor"
    module = "torch._inductor.package"

    def __init__(self) -> None:
        self._bound: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def install(self, recorder: Recorder) -> Answer:
        if self._bound is not None:
            return "yes", ""
        if LOAD_PACKAGE.problem():
            return "partly", f"no {LOAD_PACKAGE.costs}: {LOAD_PACKAGE.problem()}"
        original, guard = LOAD_PACKAGE.find(), Guard(recorder)

        @functools.wraps(original)
        def load(*args: Any, **kwargs: Any) -> Any:
            begun = time.monotonic()
            loaded = original(*args, **kwargs)
            with guard:
                if self._bound is not None and recorder.lines is not None:
                    recorder.fact("mark", {"name": "AOTInductor package loaded", "seconds": round(time.monotonic() - begun, 6)})
            return loaded

        LOAD_PACKAGE.put(load)
        self._bound = (load, original)
        return "yes", ""

    def uninstall(self) -> None:
        bound, self._bound = self._bound, None
        if bound is not None and LOAD_PACKAGE.find() is bound[0]:
            LOAD_PACKAGE.put(bound[1])
