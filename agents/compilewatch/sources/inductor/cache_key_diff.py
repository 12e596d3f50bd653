"""Cache key diff: the component of a cache key that differs from an earlier run.

The component is named after the setting that an engineer can change."""

from __future__ import annotations

import os
from collections.abc import Mapping

from compilewatch.identity.compile_config import cache_folder
from compilewatch.identity.vllm_cache_key import VLLM_KEY
from compilewatch.sources.inductor.cache_key_parts import KeyParts
from compilewatch.sources.inductor.cache_lookups import CacheAnswers, Lookup
from compilewatch.sources.inductor.run_history import Run
from compilewatch.wire.cache_miss_causes import (
    ACCESS,
    EMPTY_FOLDER,
    ENGINE,
    ENVIRONMENT,
    FOLDER,
    GPU_OR_DRIVER,
    LACKING_FOLDER,
    NO_EARLIER_RUN,
    NOT_LOADED,
    NOTHING_DIFFERS,
    ONLY_AOT_PREFIX,
    OTHER_FOLDER,
    OTHER_GRAPH,
    OTHER_INPUTS,
    OTHER_SIZES,
    READ_ONLY,
    THREAD_COUNT,
    UNWRITABLE_FOLDER,
    VERSIONS,
    WAS_UNWRITABLE,
    changed_variables,
    differences,
    engine_differences,
    first_difference,
    is_changed,
    option_words,
)

THREADS, THREAD_VARIABLES = (
    "cpp_runtime_thread_count",
    ("env OMP_NUM_THREADS", "env MKL_NUM_THREADS"),
)
_GRAPH = ("gm", "user_defined_triton_source", "triton_kernel_source_codes")
_INPUTS = "example_inputs"


def cause_of(asked: CacheAnswers, frame: str, earlier: Run | None, now: Mapping[str, str]) -> str:
    """Describes the cause of the first miss of a compilation."""
    if earlier is None:
        return NO_EARLIER_RUN
    engine = engine_cause_of(now, earlier)
    if engine or VLLM_KEY.load_failed:
        return engine or NOT_LOADED
    # The engine's components in the file are those of the last rank that wrote it, and are already
    # compared.
    now = {name: value for name, value in now.items() if not name.startswith(ENGINE)}
    missed = [lookup for lookup in asked.lookups if lookup.answer == "miss"]
    missed_graphs = [
        (lookup, lookup.parts.read())
        for lookup in missed
        if lookup.cache == "fx" and lookup.parts is not None
    ]
    graph, parts = next(
        ((lookup, parts) for lookup, parts in missed_graphs if parts is not None), (None, None)
    )
    if graph is not None and parts is not None:
        if graph.key in earlier.graphs:
            return _cause_for_same_key(graph, now, earlier.graphs[graph.key].components)
        return _cause_for_new_key(parts, frame, graph.backward, earlier, now)
    lost = any(lookup.key in earlier.keys for lookup in missed)
    cause = first_difference(now, earlier.components) or (
        _cause_for_missing_entry(now, earlier.components, LACKING_FOLDER)
        if lost
        else NOTHING_DIFFERS
    )
    return f"{ONLY_AOT_PREFIX}{cause}" if asked.answers.get("fx") == "hit" else cause


def engine_cause_of(now: Mapping[str, str], earlier: Run) -> str:
    """The first factor of the engine's own key that differs from the earlier run, or "".

    The comparison uses the same rank and part of the model if they are known. A factor may also be
    a version that all others depend on."""
    shared = [part for part in VLLM_KEY.parts if part in earlier.engine]
    pairs: list[tuple[Mapping[str, str], Mapping[str, str]]] = [
        ({**now, **VLLM_KEY.parts[part]}, {**earlier.components, **earlier.engine[part]})
        for part in shared
    ]
    for mine, theirs in pairs or [(now, earlier.components)]:
        if any(engine_differences(mine, theirs)):
            return first_difference(mine, theirs)
    return ""


def _cause_for_same_key(graph: Lookup, now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Cause of a miss for a key that an earlier run compiled."""
    if FOLDER in now and FOLDER in before and is_changed(FOLDER, now, before):
        return OTHER_FOLDER
    return (
        OTHER_SIZES
        if _count_entries(graph.key) > 1
        else _cause_for_missing_entry(now, before, WAS_UNWRITABLE)
    )


def _cause_for_missing_entry(
    now: Mapping[str, str], before: Mapping[str, str], unwritten: str
) -> str:
    """Cause of a missing entry that an earlier run looked up: never written, or deleted since.

    `unwritten` is the cause if that run could not write."""
    if now.get(ACCESS) == READ_ONLY:
        return UNWRITABLE_FOLDER
    return unwritten if before.get(ACCESS) == READ_ONLY else EMPTY_FOLDER


def _count_entries(key: str) -> int:
    """Number of cache entries for a key, including the compilation that just missed."""
    folder = os.path.join(cache_folder(os.environ), "fxgraph", key[1:3], key)  # noqa: PTH118
    try:
        return sum(not name.startswith(".") for name in os.listdir(folder))  # noqa: PTH208
    except OSError:
        return 0


def _cause_for_new_key(
    parts: KeyParts, frame: str, backward: bool, earlier: Run, now: Mapping[str, str]
) -> str:
    """Cause of a miss for a new key: its difference from the most similar earlier graph."""
    same_place = [graph for graph in earlier.graphs.values() if graph.place == (frame, backward)]
    compared = [
        (
            _names_that_differ(parts.own, graph.own)
            + _names_that_differ(parts.settings, earlier.settings.get(graph.settings, {})),
            graph,
        )
        for graph in reversed(same_place or list(earlier.graphs.values()))
    ]
    if not compared:
        return first_difference(now, earlier.components) or NOTHING_DIFFERS
    differs, nearest = min(compared, key=lambda one: len(one[0]))
    return _describe(differs if same_place else [*differs, _GRAPH[0]], now, nearest.components)


def _names_that_differ(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Names of the components that differ, in torch's order."""
    return [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]


def _describe(differs: list[str], now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Describes the most fundamental difference of the key by the setting behind it."""
    if "torch_version" in differs:
        return (
            _describe_version("torch", now, before)
            or "torch: the same version, built from other sources"
        )
    if any(name.startswith("system_info") for name in differs):
        return next(
            filter(None, (_describe_version(name, now, before) for name in VERSIONS[1:])),
            GPU_OR_DRIVER,
        )
    options = [name for name in differs if name.startswith("inductor_config")]
    if options:
        return _describe_options(options, now, before)
    if THREADS in differs:
        return next(
            (name for name in THREAD_VARIABLES if is_changed(name, now, before)), THREAD_COUNT
        )
    others = [
        name
        for name in differs
        if name not in (*_GRAPH, _INPUTS) and not name.startswith("fx_kwargs")
    ]
    if others:
        return _describe_own_part(others[0], now, before)
    return _describe_tracing(now, before) or _describe_graph(differs)


def _describe_version(name: str, now: Mapping[str, str], before: Mapping[str, str]) -> str:
    return next((words for words in differences(now, before) if words.startswith(f"{name} ")), "")


def _describe_options(options: list[str], now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Describes inductor options that differ (`inductor_config[name]`).

    The job's code, an environment variable, or the call of one compilation sets an option."""
    names = [name.partition("[")[2].rstrip("]") for name in options]
    by_code = [name for name in names if is_changed(f"inductor_config {name}", now, before)]
    if by_code:
        return option_words(f"inductor_config {by_code[0]}")
    variable = variable_of(names, changed_variables(now, before))
    if variable:
        return variable
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return option_words(f"inductor_config {names[0]}{more}")


def _describe_own_part(name: str, now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Describes a component that torch hashes separately, such as a custom pass."""
    return (
        option_words(option)
        if is_changed(option := f"inductor_config {name}", now, before)
        else name
    )


def variable_of(options: list[str], variables: list[str]) -> str:
    """The variable (`env NAME`) whose name matches one of the options; empty if none does."""
    pairs = [(variable, option) for option in options for variable in variables]
    return next(
        (
            variable
            for alike in (_is_named_after, _is_abbreviation_of)
            for variable, option in pairs
            if alike(_plain_name(variable), option)
        ),
        "",
    )


def _plain_name(variable: str) -> str:
    return (
        variable.removeprefix(ENVIRONMENT)
        .removeprefix("TORCHINDUCTOR_")
        .removeprefix("INDUCTOR_")
        .lower()
    )


def _is_named_after(variable: str, option: str) -> bool:
    """True for names such as max_autotune and max_autotune, cudagraphs and triton.cudagraphs."""
    return variable in (option.replace(".", "_"), option.rpartition(".")[2])


def _is_abbreviation_of(variable: str, option: str) -> bool:
    """True for names such as force_layout_opt and force_layout_optimization.

    Of three or more words, one may differ."""
    words, others = variable.split("_"), option.replace(".", "_").split("_")
    unmatched = [
        word
        for word in words
        if not any(word.startswith(other) or other.startswith(word) for other in others if other)
    ]
    return len(unmatched) <= (len(words) >= 3)


def _describe_tracing(now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """A variable or an option that changes the graph that inductor receives."""
    tracing = (f"{ENVIRONMENT}TORCHDYNAMO", "dynamo_config", "functorch_config")
    return next((words for words in differences(now, before) if words.startswith(tracing)), "")


def _describe_graph(differs: list[str]) -> str:
    if any(name in _GRAPH for name in differs):
        return OTHER_GRAPH
    if _INPUTS in differs:
        return OTHER_INPUTS
    options = [name.partition("[")[2].rstrip("]") for name in differs]
    return f"how it is compiled: {options[0]}" if options else NOTHING_DIFFERS
