"""Which component of a cache key differs from an earlier run's, by the name of what a person can change."""

from __future__ import annotations

import os
from collections.abc import Mapping

from compilewatch.identity.compile_config import cache_folder
from compilewatch.identity.vllm_cache_key import VLLM_KEY
from compilewatch.sources.inductor.cache_key_parts import KeyParts
from compilewatch.sources.inductor.cache_lookups import Asked, Lookup
from compilewatch.sources.inductor.run_history import Run
from compilewatch.wire.cache_miss_causes import (
    ACCESS,
    AOT_ALONE,
    EMPTY_FOLDER,
    ENGINE,
    ENVIRONMENT,
    FOLDER,
    LACKING_FOLDER,
    NO_EARLIER_RUN,
    NOT_LOADED,
    NOTHING_DIFFERS,
    OF_GPU,
    OF_THREADS,
    OTHER_FOLDER,
    OTHER_GRAPH,
    OTHER_INPUTS,
    OTHER_SIZES,
    READ_ONLY,
    UNWRITABLE_FOLDER,
    VERSIONS,
    WAS_UNWRITABLE,
    changed,
    differences,
    engine_differences,
    first_difference,
    option_words,
    variables_changed,
)

THREADS, THREAD_VARIABLES = (
    "cpp_runtime_thread_count",
    ("env OMP_NUM_THREADS", "env MKL_NUM_THREADS"),
)
_GRAPH = ("gm", "user_defined_triton_source", "triton_kernel_source_codes")
_INPUTS = "example_inputs"


def cause_of(asked: Asked, frame: str, earlier: Run | None, now: Mapping[str, str]) -> str:
    """The cause of the first miss of a compilation, in words."""
    if earlier is None:
        return NO_EARLIER_RUN
    engine = engine_cause(now, earlier)
    if engine or VLLM_KEY.not_loaded:
        return engine or NOT_LOADED
    now = {
        name: value for name, value in now.items() if not name.startswith(ENGINE)
    }  # of the last rank that wrote, and looked at
    missed = [lookup for lookup in asked.lookups if lookup.answer == "miss"]
    told = [
        (lookup, lookup.parts.read())
        for lookup in missed
        if lookup.cache == "fx" and lookup.parts is not None
    ]
    graph, parts = next(
        ((lookup, parts) for lookup, parts in told if parts is not None), (None, None)
    )
    if graph is not None and parts is not None:
        if graph.key in earlier.graphs:
            return _same_key(graph, now, earlier.graphs[graph.key].components)
        return _other_key(parts, frame, graph.backward, earlier, now)
    lost = any(lookup.key in earlier.keys for lookup in missed)
    cause = first_difference(now, earlier.components) or (
        _lost(now, earlier.components, LACKING_FOLDER) if lost else NOTHING_DIFFERS
    )
    return f"{AOT_ALONE}{cause}" if asked.answers.get("fx") == "hit" else cause


def engine_cause(now: Mapping[str, str], earlier: Run) -> str:
    """What makes an engine look where nothing of the earlier run is: the first factor of its own key that differs, of the same rank and
    part of the model where those are known, or a version that everything depends on; empty where the key is the same."""
    shared = [part for part in VLLM_KEY.parts if part in earlier.engine]
    pairs: list[tuple[Mapping[str, str], Mapping[str, str]]] = [
        ({**now, **VLLM_KEY.parts[part]}, {**earlier.components, **earlier.engine[part]})
        for part in shared
    ]
    for mine, theirs in pairs or [(now, earlier.components)]:
        if any(engine_differences(mine, theirs)):
            return first_difference(mine, theirs)
    return ""


def _same_key(graph: Lookup, now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Torch asked for what an earlier run compiled, and the cache did not have it."""
    if FOLDER in now and FOLDER in before and changed(FOLDER, now, before):
        return OTHER_FOLDER
    return OTHER_SIZES if _entries(graph.key) > 1 else _lost(now, before, WAS_UNWRITABLE)


def _lost(now: Mapping[str, str], before: Mapping[str, str], unwritten: str) -> str:
    """Why the folder does not hold what an earlier run asked for: it was never put there, which `unwritten` says of that run, or it is
    there no more."""
    if now.get(ACCESS) == READ_ONLY:
        return UNWRITABLE_FOLDER
    return unwritten if before.get(ACCESS) == READ_ONLY else EMPTY_FOLDER


def _entries(key: str) -> int:
    """How many compilations the cache holds under a key; the one that just missed is among them."""
    folder = os.path.join(cache_folder(os.environ), "fxgraph", key[1:3], key)  # noqa: PTH118 - the path as torch makes it
    try:
        return sum(not name.startswith(".") for name in os.listdir(folder))  # noqa: PTH208
    except OSError:
        return 0


def _other_key(
    parts: KeyParts, frame: str, backward: bool, earlier: Run, now: Mapping[str, str]
) -> str:
    """Torch asked for something new: what of it differs from the graph of the earlier run that comes nearest."""
    alike = [graph for graph in earlier.graphs.values() if graph.place == (frame, backward)]
    compared = [
        (
            _differing(parts.own, graph.own)
            + _differing(parts.settings, earlier.settings.get(graph.settings, {})),
            graph,
        )
        for graph in reversed(alike or list(earlier.graphs.values()))
    ]
    if not compared:
        return first_difference(now, earlier.components) or NOTHING_DIFFERS
    differs, nearest = min(compared, key=lambda one: len(one[0]))
    return _named(differs if alike else [*differs, _GRAPH[0]], now, nearest.components)


def _differing(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The names that differ, in torch's order."""
    return [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]


def _named(differs: list[str], now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """The most fundamental of what differs in the key, by the name of what a person can change."""
    if "torch_version" in differs:
        return _version("torch", now, before) or "torch: the same version, built from other sources"
    if any(name.startswith("system_info") for name in differs):
        return next(filter(None, (_version(name, now, before) for name in VERSIONS[1:])), OF_GPU)
    options = [name for name in differs if name.startswith("inductor_config")]
    if options:
        return _option(options, now, before)
    if THREADS in differs:
        return next((name for name in THREAD_VARIABLES if changed(name, now, before)), OF_THREADS)
    others = [
        name
        for name in differs
        if name not in (*_GRAPH, _INPUTS) and not name.startswith("fx_kwargs")
    ]
    if others:
        return _own_part(others[0], now, before)
    return _traced(now, before) or _graph(differs)


def _version(name: str, now: Mapping[str, str], before: Mapping[str, str]) -> str:
    return next((words for words in differences(now, before) if words.startswith(f"{name} ")), "")


def _option(options: list[str], now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Options of inductor that differ, `inductor_config[name]`: set by the job's code, by a variable, or for one compilation."""
    names = [name.partition("[")[2].rstrip("]") for name in options]
    by_code = [name for name in names if changed(f"inductor_config {name}", now, before)]
    if by_code:
        return option_words(f"inductor_config {by_code[0]}")
    named = variable_of(names, variables_changed(now, before))
    if named:
        return named
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return option_words(f"inductor_config {names[0]}{more}")


def _own_part(name: str, now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """What torch hashes by itself; of these custom passes are options of inductor all the same."""
    return (
        option_words(option) if changed(option := f"inductor_config {name}", now, before) else name
    )


def variable_of(options: list[str], variables: list[str]) -> str:
    """The variable, `env NAME`, that is named like one of the options; empty where none is."""
    pairs = [(variable, option) for option in options for variable in variables]
    return next(
        (
            variable
            for alike in (_named_after, _alike)
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


def _named_after(variable: str, option: str) -> bool:
    """max_autotune and max_autotune; cudagraphs and triton.cudagraphs."""
    return variable in (option.replace(".", "_"), option.rpartition(".")[2])


def _alike(variable: str, option: str) -> bool:
    """force_layout_opt and force_layout_optimization; of three words and more one may be another."""
    words, others = variable.split("_"), option.replace(".", "_").split("_")
    strange = [
        word
        for word in words
        if not any(word.startswith(other) or other.startswith(word) for other in others if other)
    ]
    return len(strange) <= (len(words) >= 3)


def _traced(now: Mapping[str, str], before: Mapping[str, str]) -> str:
    """A variable or an option that changes what Dynamo and AOTAutograd hand to inductor."""
    tracing = (f"{ENVIRONMENT}TORCHDYNAMO", "dynamo_config", "functorch_config")
    return next((words for words in differences(now, before) if words.startswith(tracing)), "")


def _graph(differs: list[str]) -> str:
    if any(name in _GRAPH for name in differs):
        return OTHER_GRAPH
    if _INPUTS in differs:
        return OTHER_INPUTS
    options = [name.partition("[")[2].rstrip("]") for name in differs]
    return f"how it is compiled: {options[0]}" if options else NOTHING_DIFFERS
