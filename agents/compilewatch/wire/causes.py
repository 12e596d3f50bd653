"""Which part of its configuration makes a compilation miss the cache: the order and the words that agent and dashboard share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

VERSIONS = ("torch", "cuda", "triton", "gpu")
"""Components that are sent as what they are; all others are hashes. The most fundamental first."""
ENVIRONMENT, FOLDER, KERNELS_FOLDER = "env ", "cache folder", "triton cache folder"
ACCESS, READ_ONLY, WRITTEN = "cache folder access", "read-only", "read and write"
"""Whether the process may write where torch keeps what it compiled; the component is left out where that is not known."""
OPTIONS = ("inductor_config", "functorch_config", "dynamo_config")

NO_EARLIER_RUN = "no earlier run is known"
NOTHING_DIFFERS = "nothing that we can see differs"
OTHER_FOLDER = "cache folder: another one than before"
EMPTY_FOLDER = "cache folder is new or was emptied"
UNWRITABLE_FOLDER = "cache folder cannot be written: nothing that is compiled stays in it"
WAS_UNWRITABLE = "cache folder could not be written by the run before: nothing that it compiled is in it"
LACKING_FOLDER = "cache folder does not hold it: it is new, was emptied, or was not written"
"""Where it is not known who could write when."""
OTHER_GRAPH, OTHER_INPUTS = "graph", "inputs of the graph: their number, sizes, types or devices"
OTHER_SIZES = "guards: what the cache holds was compiled for other sizes"
OF_THREADS, OF_GPU = "number of CPU threads", "GPU or driver"
AOT_ALONE = "AOTAutograd's cache alone, the graph was there: "
"""Stands before a cause where only the second cache missed."""
SENTENCES = (
    NO_EARLIER_RUN,
    NOTHING_DIFFERS,
    OTHER_FOLDER,
    EMPTY_FOLDER,
    UNWRITABLE_FOLDER,
    WAS_UNWRITABLE,
    LACKING_FOLDER,
    OTHER_GRAPH,
    OTHER_INPUTS,
)

_NO_CAUSE = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_SHOW", "TORCH_CPP_LOG", "TORCH_DISTRIBUTED", "TORCH_NCCL", "NCCL_", "CUDA_VISIBLE")
"""Variables that say where and how loud a process runs, not how it compiles."""


def first_difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """The most fundamental component that differs, in words; empty where none does. Versions are named, values never."""
    return next(differences(mine, theirs), "")


def differences(mine: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    """Every component that differs and can make a compilation miss, in words, the most fundamental first."""
    for name in VERSIONS:
        if changed(name, mine, theirs) and name in mine and name in theirs:
            yield f"{name} {theirs[name] or 'none'} -> {mine[name] or 'none'}"
    yield from variables_changed(mine, theirs)
    for module in OPTIONS:
        options = sorted(name for name in {**mine, **theirs} if name.startswith(f"{module} ") and changed(name, mine, theirs))
        yield from (option_words(name) for name in options)
    if FOLDER in mine and FOLDER in theirs and changed(FOLDER, mine, theirs):
        yield OTHER_FOLDER


def variables_changed(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The environment variables that differ, as `env NAME`."""
    names = sorted(name for name in {**mine, **theirs} if name.startswith(ENVIRONMENT) and changed(name, mine, theirs))
    return [name for name in names if not name[len(ENVIRONMENT) :].startswith(_NO_CAUSE)]


def option_words(name: str) -> str:
    """`inductor_config max_autotune` as people read it."""
    module, _, option = name.partition(" ")
    return f"{module}: {option}"


def changed(name: str, mine: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Whether the component is not the same on both sides."""
    return mine.get(name) != theirs.get(name)
