"""Triton kernels that were compiled again although inductor's cache had the graph: Triton keeps them in a folder of its own, and what
torch's bundle of kernels does not bring along is looked for there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from itertools import islice

from compilewatch.identity.compile_config import kernels_folder
from compilewatch.wire.cache_miss_causes import KERNELS_FOLDER, changed
from compilewatch.wire.messages import Compile

MIN_SECONDS = 0.05
"""Torch waits shorter than this for a kernel that is there."""
MAX_KERNELS = 10_000
SLACK_SECONDS = 1.0
_BINARIES = (".cubin", ".hsaco", ".zebin")


def compiled_again(compile: Compile, environ: Mapping[str, str]) -> int:
    """How many kernels were written while the compilation ran, which the graph cache served; 0 where torch had bundled them."""
    answers = {compile.cache.get("fx"), compile.cache.get("aot")}
    served = "hit" in answers and "miss" not in answers
    if (
        not served
        or compile.cache.get("bundle") == "hit"
        or compile.seconds.get("triton", 0.0) < MIN_SECONDS
    ):
        return 0
    began, ended = (
        compile.at - compile.seconds.get("total", 0.0) - SLACK_SECONDS,
        compile.at + SLACK_SECONDS,
    )
    return sum(
        began <= written <= ended
        for written in islice(_written(kernels_folder(environ)), MAX_KERNELS)
    )


def sentence(count: int, now: Mapping[str, str], before: Mapping[str, str] | None) -> str:
    """What happened, and why as far as the earlier run of the model tells."""
    if before is None:
        why = "no earlier run is known"
    elif changed(KERNELS_FOLDER, now, before):
        why = f"{KERNELS_FOLDER}: another one than before"
    else:
        why = f"{KERNELS_FOLDER} is that of the last run, it was emptied or not used"
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    return f"the graph was there, Triton compiled {kernels} again: {why}"


def _written(folder: str) -> Iterator[float]:
    """When each kernel in the folder was written, in Unix seconds: a folder of its own each, below one for each GPU or not. That folder's
    own time says less: Triton also writes into it when it loads the kernel that is there."""
    for entry in _entries(folder):
        if entry.name.isdigit():
            yield from _written(entry.path)
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
