"""Autotune cache: the kernel that inductor chose for a matrix multiplication.

A choice comes from the cache or from a new measurement."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compilewatch.identity.autotuned_kernels import note_choice
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.torch_internals import GEMM_CHOICES
from compilewatch.sources import Capability, Source
from compilewatch.sources.inductor.cache_lookups import CacheLookups, Lookup

_OPERATOR, _INPUTS, _BENCHMARK = 1, 2, 3
"""Positions of the arguments in `lookup(choices, op, inputs, benchmark)`; `benchmark` measures."""


class AutotuneCache(Source):
    """Wraps the lookup of `PersistentCache`, which measures only after a cache miss."""

    name = "autotune_cache"
    module = "torch._inductor.codecache"

    def __init__(self) -> None:
        self._bound: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def install(self, recorder: Recorder) -> Capability:
        problem = GEMM_CHOICES.problem()
        if problem:
            return "no", f"no choices of matrix multiplications: {problem}"
        if self._bound is None:
            self._bind(recorder)
        return "yes", ""

    def uninstall(self) -> None:
        bound, self._bound = self._bound, None
        if bound is not None and GEMM_CHOICES.find() is bound[0]:
            GEMM_CHOICES.put(bound[1])

    def _bind(self, recorder: Recorder) -> None:
        previous, lookups, barrier = (
            GEMM_CHOICES.find(),
            CacheLookups.of(recorder),
            FaultBarrier(recorder.record_internal_error),
        )

        @functools.wraps(previous)
        def lookup(owner: Any, *args: Any, **kwargs: Any) -> Any:
            measured: list[bool] = []
            if self._bound is not None:
                with barrier:
                    args, kwargs = _with_recorded_benchmark(measured, args, kwargs)
            timings = previous(owner, *args, **kwargs)
            if self._bound is not None and (measured or timings):
                with barrier:
                    lookups.add(Lookup("autotune", "miss" if measured else "hit"))
                    if timings:
                        note_choice(
                            _argument_of(_OPERATOR, "op", args, kwargs),
                            _argument_of(_INPUTS, "inputs", args, kwargs),
                            timings,
                        )
            return timings

        self._bound = (lookup, previous)
        GEMM_CHOICES.put(lookup)


def _argument_of(place: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return kwargs[name] if name in kwargs else args[place]


def _with_recorded_benchmark(
    measured: list[bool], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Replaces the `benchmark` argument by a function that also records that it was called."""
    benchmark = _argument_of(_BENCHMARK, "benchmark", args, kwargs)
    if benchmark is None:
        return args, kwargs

    @functools.wraps(benchmark)
    def record_benchmark(*choices: Any, **options: Any) -> Any:
        measured.append(True)
        return benchmark(*choices, **options)

    if "benchmark" in kwargs:
        return args, {**kwargs, "benchmark": record_benchmark}
    return (*args[:_BENCHMARK], record_benchmark, *args[_BENCHMARK + 1 :]), kwargs
