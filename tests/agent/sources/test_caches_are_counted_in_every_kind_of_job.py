"""The answer of each cache is right although the job clears torch's counters, bypasses a cache, or
loads a mega-cache."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._dynamo.utils as utils
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.inductor.autotune_cache import AutotuneCache
from compilewatch.sources.inductor.cache_lookups import CacheCounters, CacheLookups, LookupResult
from compilewatch.sources.inductor.cache_miss_reasons import MissCauses
from compilewatch.sources.inductor.mega_cache import MegaCache
from compilewatch.wire.messages import Compile, Report
from torch._inductor.compile_fx import compile_fx
from torch._inductor.utils import fresh_cache
from torch.compiler._cache import CacheArtifactManager

from tests.agent.sources.conftest import Seen, found


@pytest.fixture(autouse=True)
def empty_caches() -> Iterator[None]:
    with fresh_cache():
        yield


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ x


def compiled(seen: Seen, backend: str | Callable[..., Any] = "inductor") -> Compile:
    torch._dynamo.reset()
    torch.compile(product, backend=backend)(torch.ones(4, 4))
    (event,) = seen.compiles()
    return event


def reported(seen: Seen) -> Report:
    MissCauses.of(seen.recorder).explain_queued()
    return seen.look()


def test_counters_that_were_cleared_and_grew_back_still_count(seen: Seen) -> None:
    assert compiled(seen).cache == {"fx": "miss", "aot": "miss"}
    assert compiled(seen).cache == {"fx": "hit", "aot": "hit"}
    for _ in range(2):
        utils.counters.clear()
        assert compiled(seen).cache == {"fx": "hit", "aot": "hit"}


def test_counters_cleared_in_the_middle_of_a_compilation_change_nothing(seen: Seen) -> None:
    def clearing(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        utils.counters.clear()
        result = compile_fx(graph, inputs)
        utils.counters.clear()
        return result

    assert compiled(seen, clearing).cache == {"fx": "miss", "aot": "miss"}
    assert compiled(seen, clearing).cache == {"fx": "hit", "aot": "hit"}


def test_a_second_process_with_the_same_key_has_the_same_name_for_it(seen: Seen) -> None:
    cold, warm = compiled(seen), compiled(seen)
    assert cold.key == warm.key
    assert len(cold.key) == 16
    with torch._inductor.config.patch(epilogue_fusion=False):
        assert compiled(seen).key != cold.key


def test_a_bypass_gives_its_reason(seen: Seen) -> None:
    with torch._inductor.config.patch(post_grad_custom_post_pass=lambda graph: None):
        torch.compile(product)(torch.ones(4, 4))
    report = reported(seen)
    (event,) = report.compiles
    assert event.cache == {"fx": "bypass", "aot": "bypass"}
    (finding,) = found(report, "cache_miss")
    assert finding.text == "cache bypassed: Unsupported post grad custom pass"
    assert finding.where.endswith(" in product")
    assert finding.seconds == pytest.approx(event.seconds["total"])


def test_a_cache_that_is_off_is_not_asked_and_reported_as_off(seen: Seen) -> None:
    with torch._inductor.config.patch(fx_graph_cache=False):
        event = compiled(seen)
    assert event.cache == {"aot": "bypass"}
    assert [finding.text for finding in found(reported(seen), "cache_miss")] == [
        "cache bypassed: FX graph cache is not enabled"
    ]


def test_a_mega_cache_is_marked_and_its_hits_are_separate(seen: Seen) -> None:
    source = MegaCache()
    assert source.install(seen.recorder) == ("yes", "")
    CacheArtifactManager.clear()
    compiled(seen)
    packed, _ = torch.compiler.save_cache_artifacts()
    (saved,) = reported(seen).facts
    with fresh_cache():
        assert compiled(seen).cache == {"fx": "miss", "aot": "miss"}
    with fresh_cache():
        torch.compiler.load_cache_artifacts(packed)
        torch._dynamo.reset()
        torch.compile(product)(torch.ones(4, 4))
        torch.compile(product)(torch.ones(5, 5))
    report = reported(seen)
    assert [event.cache for event in report.compiles] == [
        {"fx": "hit", "aot": "hit", "mega": "hit"},
        {"fx": "miss", "aot": "miss", "mega": "miss"},
    ]
    (loaded,) = [fact for fact in report.facts if fact.kind == "mark"]
    assert [fact.data["name"] for fact in (saved, loaded)] == [
        "mega-cache saved",
        "mega-cache loaded",
    ]
    assert saved.data["bytes"] == loaded.data["bytes"] == len(packed)
    assert saved.data["artifacts"] == loaded.data["artifacts"]
    assert loaded.data["artifacts"]["aot_autograd"] == 1
    source.uninstall()
    assert torch.compiler.load_cache_artifacts.__module__ == "torch.compiler"


class Choice:
    """A kernel that autotuning could choose."""

    def hash_key(self) -> str:
        return "a kernel"


def test_choices_of_kernels_are_a_miss_when_measured_and_a_hit_when_known() -> None:
    recorder = Recorder()
    source, lookups = AutotuneCache(), CacheLookups.of(recorder)
    assert source.install(recorder) == ("yes", "")
    cache = torch._inductor.codecache.PersistentCache()
    choice = Choice()

    def answers(benchmark: Callable[..., Any] | None) -> dict[str, str]:
        timings = cache.lookup([choice], "mm", "[4, 4]", benchmark=benchmark)
        assert benchmark is None or list(timings.values()) == [0.25]
        return lookups.merge_answers(lookups.collect(), SimpleNamespace()).answers

    assert answers(None) == {}
    assert answers(lambda choices: dict.fromkeys(choices, 0.25)) == {"autotune": "miss"}
    assert answers(lambda choices: pytest.fail("it is known")) == {"autotune": "hit"}
    with pytest.raises(ZeroDivisionError):
        cache.lookup([choice], "mm", "[8, 8]", lambda choices: 1 // 0)
    source.uninstall()
    assert (
        "agents/compilewatch"
        not in torch._inductor.codecache.PersistentCache.lookup.__code__.co_filename
    )
    assert recorder.internal_error_count == 0


def counted(counters: Any, **grown: int) -> dict[str, str]:
    lookups = CacheLookups()
    lookups.set_counters(counters)
    counters["inductor"].update(grown)
    return lookups.merge_answers(lookups.collect(), SimpleNamespace()).answers


def test_triton_kernels_out_of_a_bundle_are_a_hit_and_those_put_into_one_a_miss() -> None:
    assert counted(defaultdict(Counter), triton_bundler_save_kernel=3) == {"bundle": "miss"}
    assert counted(defaultdict(Counter), triton_bundler_read_and_emit_kernel=3) == {"bundle": "hit"}
    assert counted(defaultdict(Counter), triton_bundler_load_static_autotuner=1) == {
        "bundle": "hit"
    }


def test_an_older_torch_replays_the_counters_behind_a_hit() -> None:
    counters = defaultdict(Counter, aot_autograd=Counter(autograd_cache_hit=1))
    lookups = CacheLookups()
    lookups.set_counters(counters)
    counters["aot_autograd"]["autograd_cache_hit"] += 1
    counters["inductor"]["fxgraph_cache_miss"] += 1
    assert lookups.merge_answers(lookups.collect(), SimpleNamespace()).answers == {
        "fx": "hit",
        "aot": "hit",
    }


def test_an_older_torch_with_counters_cleared_between_two_reads_is_still_reported() -> None:
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
    caches = CacheCounters(counters)
    counters["inductor"]["fxgraph_cache_hit"] += 1
    assert caches.read_delta() == {"fx": "hit"}
    counters.clear()
    counters["inductor"]["fxgraph_cache_hit"] += 1
    assert caches.read_delta() == {"fx": "hit"}
    assert caches.read_delta() == {}


@pytest.mark.parametrize(
    ("counts", "answer"),
    [
        ({"local_cache_hit_count": 2}, {"fx": "hit"}),
        ({"local_cache_hit_count": 2, "local_cache_miss_count": 1}, {"fx": "miss"}),
        ({"local_cache_miss_count": 1, "remote_cache_hit_count": 1}, {"fx": "hit"}),
        ({"local_cache_miss_count": 1, "remote_cache_miss_count": 1}, {"fx": "miss"}),
        ({"remote_cache_miss_count": 1}, {"fx": "miss"}),
        ({"local_cache_hit_count": "many"}, {}),
        ({}, {}),
    ],
)
def test_a_record_that_counts_lookups_is_trusted(
    counts: dict[str, Any], answer: dict[str, str]
) -> None:
    record = SimpleNamespace(**{f"inductor_fx_{name}": value for name, value in counts.items()})
    assert CacheLookups().merge_answers(LookupResult([], {}), record).answers == answer
