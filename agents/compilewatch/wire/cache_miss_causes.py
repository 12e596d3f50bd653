"""Cache miss causes: a diff of two compile configurations, in an order and in words that agent and
dashboard share.

The texts are stored values: dashboards compare them with texts of earlier releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

VERSIONS = ("torch", "cuda", "triton", "gpu")
"""Components sent in plain text, the most fundamental first; all others are hashes."""
ENVIRONMENT, FOLDER, KERNELS_FOLDER = "env ", "cache folder", "triton cache folder"
ACCESS, READ_ONLY, WRITTEN = "cache folder access", "read-only", "read and write"
"""Whether the process may write to torch's cache folder; left out if that is unknown."""
ENGINE, ENGINE_VERSION, ENGINE_ENVIRONMENT, ENGINE_KEY = (
    "vllm ",
    "vllm version",
    "vllm env ",
    "vllm key",
)
"""Components of vLLM's cache key: the common prefix, the version, the prefix of a single variable,
and the key.
"""
_COMPILER = "vllm compiler_hash"
OPTIONS = ("inductor_config", "functorch_config", "dynamo_config")

ENGINE_CAUSE = "vLLM's cache key: "
"""Prefix of the factor that differs."""
NOT_LOADED = "vLLM could not load the AOT compilation that it had kept"
_FACTORS = {
    "config_hash": "an option of the engine, or the model's configuration",
    "code_hash": "source files of the model",
    "compiler_hash": "torch, options of inductor, or the machine",
    "key": "another one than before, which factor differs is not known",
}

NO_EARLIER_RUN = "no earlier run is known"
NOTHING_DIFFERS = "nothing that we can see differs"
OTHER_FOLDER = "cache folder: another one than before"
EMPTY_FOLDER = "cache folder is new or was emptied"
UNWRITABLE_FOLDER = "cache folder cannot be written: nothing that is compiled stays in it"
WAS_UNWRITABLE = (
    "cache folder could not be written by the run before: nothing that it compiled is in it"
)
LACKING_FOLDER = "cache folder does not hold it: it is new, was emptied, or was not written"
"""For cases in which it is unknown who could write, and when."""
OTHER_GRAPH, OTHER_INPUTS = "graph", "inputs of the graph: their number, sizes, types or devices"
OTHER_SIZES = "guards: what the cache holds was compiled for other sizes"
THREAD_COUNT, GPU_OR_DRIVER = "number of CPU threads", "GPU or driver"
ONLY_AOT_PREFIX = "AOTAutograd's cache alone, the graph was there: "
"""Prefix of a cause if only the second cache missed."""
SENTENCES = (
    NO_EARLIER_RUN,
    NOTHING_DIFFERS,
    OTHER_FOLDER,
    EMPTY_FOLDER,
    UNWRITABLE_FOLDER,
    WAS_UNWRITABLE,
    LACKING_FOLDER,
    NOT_LOADED,
    OTHER_GRAPH,
    OTHER_INPUTS,
)

_NO_CAUSE = (
    "TORCH_LOGS",
    "TORCH_TRACE",
    "TORCH_SHOW",
    "TORCH_CPP_LOG",
    "TORCH_DISTRIBUTED",
    "TORCH_NCCL",
    "NCCL_",
    "CUDA_VISIBLE",
)
"""Variables for logging and placement, which do not change a compilation."""


def first_difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Returns the most fundamental difference in words; empty if there is none.

    Versions are named, values never.
    """
    return next(differences(mine, theirs), "")


def differences(mine: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    """Yields each difference that can cause a cache miss, in words, the most fundamental first."""
    for name in VERSIONS:
        if is_changed(name, mine, theirs) and name in mine and name in theirs:
            yield f"{name} {theirs[name] or 'none'} -> {mine[name] or 'none'}"
    first, last = engine_differences(mine, theirs)
    yield from first
    yield from changed_variables(mine, theirs)
    for module in OPTIONS:
        options = sorted(
            name
            for name in {**mine, **theirs}
            if name.startswith(f"{module} ") and is_changed(name, mine, theirs)
        )
        yield from (option_words(name) for name in options)
    yield from last
    if FOLDER in mine and FOLDER in theirs and is_changed(FOLDER, mine, theirs):
        yield OTHER_FOLDER


def engine_differences(
    mine: Mapping[str, str], theirs: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Returns the factors of vLLM's key that differ, in words.

    The first list holds specific factors. The second list holds factors that a variable or an
    option of torch explains better. A factor that only one side reports is no difference; a
    variable that only one side reports is one.
    """
    have_variables = any(name.startswith(ENGINE_ENVIRONMENT) for name in mine) and any(
        name.startswith(ENGINE_ENVIRONMENT) for name in theirs
    )
    names = [
        name
        for name in sorted(
            {**mine, **theirs},
            key=lambda name: (
                name != ENGINE_VERSION,
                not name.startswith(ENGINE_ENVIRONMENT),
                name,
            ),
        )
        if name.startswith(ENGINE)
        and is_changed(name, mine, theirs)
        and (
            (name in mine and name in theirs)
            or (have_variables and name.startswith(ENGINE_ENVIRONMENT))
        )
    ]
    generic_factors = (_COMPILER, ENGINE_KEY)
    words_by_factor = {
        name: _factor_words(name, mine, theirs)
        for name in names
        if name != "vllm env" or not have_variables
    }
    return [words for name, words in words_by_factor.items() if name not in generic_factors], [
        words_by_factor[name] for name in generic_factors if name in words_by_factor
    ]


def engine_component(cause: str) -> str:
    """Returns the name of the factor in a cause of vLLM's key."""
    factor = cause.removeprefix(ENGINE_CAUSE).partition(" (")[0]
    return ENGINE_VERSION if factor.startswith("version ") else f"{ENGINE}{factor}"


def _factor_words(name: str, mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    if name == ENGINE_VERSION:
        return f"{ENGINE_CAUSE}version {theirs[name]} -> {mine[name]}"
    factor = name.removeprefix(ENGINE)
    return f"{ENGINE_CAUSE}{factor}" + (f" ({_FACTORS[factor]})" if factor in _FACTORS else "")


def changed_variables(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Returns the environment variables that differ, as `env NAME`."""
    names = sorted(
        name
        for name in {**mine, **theirs}
        if name.startswith(ENVIRONMENT) and is_changed(name, mine, theirs)
    )
    return [name for name in names if not name[len(ENVIRONMENT) :].startswith(_NO_CAUSE)]


def option_words(name: str) -> str:
    """Formats `inductor_config max_autotune` for readers."""
    module, _, option = name.partition(" ")
    return f"{module}: {option}"


def is_changed(name: str, mine: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Returns whether the component differs between the two sides."""
    return mine.get(name) != theirs.get(name)
