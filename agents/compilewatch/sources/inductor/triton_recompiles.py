"""Triton recompiles: kernels compiled again although inductor's cache had the graph.

Triton keeps kernels in its own folder and looks there for kernels that torch's bundle lacks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from itertools import islice

from compilewatch.identity.compile_config import kernels_folder
from compilewatch.wire.cache_miss_causes import KERNELS_FOLDER, is_changed
from compilewatch.wire.messages import Compile

MIN_SECONDS = 0.05
"""torch waits less than this for a kernel that exists."""
MAX_KERNELS = 10_000
SLACK_SECONDS = 1.0
_BINARIES = (".cubin", ".hsaco", ".zebin")


def count_recompiled_kernels(compile: Compile, environ: Mapping[str, str]) -> int:
    """Counts kernels written during a compilation that hit the graph cache; 0 if bundled."""
    answers = {compile.cache.get("fx"), compile.cache.get("aot")}
    served = "hit" in answers and "miss" not in answers
    if (
        not served
        or compile.cache.get("bundle") == "hit"
        or compile.seconds.get("triton", 0.0) < MIN_SECONDS
    ):
        return 0
    start, end = (
        compile.at - compile.seconds.get("total", 0.0) - SLACK_SECONDS,
        compile.at + SLACK_SECONDS,
    )
    return sum(
        start <= written <= end
        for written in islice(_write_times(kernels_folder(environ)), MAX_KERNELS)
    )


def describe_recompile(count: int, now: Mapping[str, str], before: Mapping[str, str] | None) -> str:
    """Describes the recompilation and its cause, as far as the model's earlier run shows it."""
    if before is None:
        why = "no earlier run is known"
    elif is_changed(KERNELS_FOLDER, now, before):
        why = f"{KERNELS_FOLDER}: another one than before"
    else:
        why = f"{KERNELS_FOLDER} is that of the last run, it was emptied or not used"
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    return f"the graph was there, Triton compiled {kernels} again: {why}"


def _write_times(folder: str) -> Iterator[float]:
    """Write time of each kernel in Unix seconds.

    Each kernel has its own folder, optionally below a folder per GPU. The time of the kernel's
    folder is useless: Triton also writes into it when it loads a kernel."""
    for entry in _entries(folder):
        if entry.name.isdigit():
            yield from _write_times(entry.path)
        else:
            for one in _entries(entry.path):
                if one.name.endswith(_BINARIES):
                    with contextlib.suppress(OSError):  # another process empties the folder
                        yield one.stat().st_mtime


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MAX_KERNELS))
    except OSError:
        return []
