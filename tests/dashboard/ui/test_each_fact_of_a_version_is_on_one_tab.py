"""Every fact of the former Version page is on exactly one of the tabs Compiles and Startup."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN
from compilewatch.wire.messages import Compile
from compilewatch.wire.numerics import Parity, parity_data
from django.test import Client

from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import (
    HIT,
    MISS,
    NEW_OPTION,
    TABS,
    Story,
    compiled,
    shown,
)

pytestmark = pytest.mark.django_db
KERNEL = {"kernel mm 1a2b3c": "triton_mm aa"}
FACTS = {
    "compiles": (
        "<dt>Served compiled</dt>",
        "of 3,000 calls with known mode",
        "of call time, assuming equal durations",
        "budget 99.5%, error budget used",
        "Causes of eager calls",
        "60 of 3,000 calls with known mode ran eager",
        "<dt>Recompile limit</dt>",
        "CUDA graph recordings",
        "3 first compiles",
        "15 recompiles",
        "15 blocked a request",
        "<b>6 of 8 cache entries</b>, 2 left",
        "x.<wbr>size(0) == 8",
        "ranker/<wbr>score.<wbr>py:118",
        "FX graph</th>",
        "AOTAutograd</th>",
        "by time",
        "inductor_config: max_autotune",
        "introduced by <bdi>2 on gpu-04</bdi>",
        "3 of 3 starts with misses were expected to hit",
        "of the missed seconds",
        "Compile phases by graph",
        "FX miss, AOT miss",
        "Blocked a request",
        "after start",
        'id="memory"',
        "batch of 16",
        "Shadow sampling",
        "forward shadow",
        "Autotune divergence across replicas",
        "no CUDA runtime here",
        "Telemetry gaps",
    ),
    "startup": (
        "budget 52.5 s, 1 of 3 over",
        "Slowest start: 53 s",
        "Unaccounted time, outside of all events",
        "Import of torch",
        "weights loaded",
        "all 3 starts slower than all 3 of the baseline",
        "All 3 starts",
        "Warm-up forecast",
        "80% interval",
        "A warm cache",
        "Spent recompiling",
        "Saved by caches",
        "torch’s estimate",
        "Compile cost and savings since",
        "<dt>Deployed</dt>",
        "<dt>First seen</dt>",
        "<dt>Last seen</dt>",
        "<dt>Processes</dt>",
        "<dt>State</dt>",
    ),
}


def recompiles() -> list[Compile]:
    return [
        compiled(
            0, 1.0, HIT, kind="recompile", entries=number, limit=8, reason="x.size(0) == 8",
            in_request=True,
        )
        for number in range(2, 7)
    ]  # fmt: skip


@pytest.fixture
def told(store_reports: Callable[..., object]) -> Story:
    """Three warm starts of version 1 and three cold starts of version 2 with every signal."""
    story = Story(store_reports)
    for number in range(3):
        story.start("1", compiling=10.0 + number, ago=120 - number, key="ak1", saved=9.0)
    batch = parity_data(
        Parity("batch of 16", "passed", region="forward", error=1e-4, tolerance=1e-2)
    )
    shadow = parity_data(
        Parity(
            "shadow calls of forward shadow", "passed", region="forward shadow", kind="shadow",
            samples=40, timed=40, compiled_seconds=0.01, eager_seconds=0.02,
        )
    )  # fmt: skip
    for number in range(3):
        first = compiled(
            0, 40.0 + number, MISS, miss=NO_EARLIER_RUN, key="ak2", entries=1, limit=8, saved=1.0
        )
        story.start(
            "2",
            compiling=40.0 + number,
            ago=30 - number,
            timed=[first, *recompiles()],
            eager=20,
            components=NEW_OPTION | KERNEL,
            parities=[batch, shadow],
            identity={"capabilities": {"gpu_time": ("no", "no CUDA runtime here")}},
        )
    story.fold()
    WatchedModel.objects.update(cold_start_budget=52.5, served_budget=0.995)
    return story


def test_every_fact_is_on_exactly_one_tab(told: Story, signed_in: Client, project: Project) -> None:
    texts = {tab: shown(signed_in, project, "2", tabs=[tab]) for tab in TABS}
    wrong = []
    for tab, facts in FACTS.items():
        for fact in facts:
            places = [name for name, text in texts.items() if fact in text]
            if places != [tab]:
                wrong.append((fact, places))
    assert wrong == []
