"""Two of a version's four processes have agents without the newer fields: pages state how many
processes report a fact and claim nothing about the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.wire.messages import Request
from compilewatch.wire.numerics import Parity, parity_data
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.instances.instance_states import InstanceState, instance_state
from dashboard.projects.models import Project
from tests.dashboard.ui.version_story import CONFIGURED, HIT, MISS, Story, part, shown, url_of

pytestmark = pytest.mark.django_db
Fields = dict[str, Any]
COMPONENTS = {
    **CONFIGURED,
    "cache folder access": "read and write",
    "inductor_config max_autotune": "9f",
    "kernel mm 1a2b": "triton_mm aa",
}
SEES = {
    "identity": {
        "driver": "580.65",
        "capabilities": {"compiled_calls": ("yes", ""), "gpu_time": ("no", "no CUDA")},
    }
}


def older(request: Request) -> Request:
    """The request as the first agents of this wire format sent it: compilations and calls, without
    the later fields."""
    identity = replace(
        request.instance, components={}, capabilities={}, driver="", cuda="", triton="", python=""
    )
    reports = []
    for report in request.reports:
        compiles = [
            replace(one, miss="", key="", cache={}, backend="", saved=0.0)
            for one in report.compiles
        ]
        regions = [
            replace(one, compiled=0, partial=0, sampled=0, unknown=0, eager_by={})
            for one in report.regions
        ]
        reports.append(replace(report, compiles=compiles, regions=regions, facts=[], findings=[]))
    return replace(request, instance=identity, reports=reports)


class Half:
    """Starts of a version; every second start has an older agent. An earlier version was warm."""

    def __init__(self, store: Callable[..., object], client: Client, project: Project) -> None:
        self.new, self.old = Story(store), Story(lambda request: store(older(request)), started=50)
        self.client, self.project = client, project
        self.new.start("1", ago=200, cache=HIT, components=COMPONENTS, **SEES)

    def run(self, **told: Any) -> str:
        """Run two processes of each kind; returns the page of their version."""
        for place in range(2):
            self.new.start("2", ago=60 - place, components=COMPONENTS, **SEES, **told)
            self.old.start("2", ago=50 - place, **told)
        fold_all()
        return re.sub(r"<svg.*?</svg>", "", shown(self.client, self.project, "2"))

    def json(self) -> dict[str, Any]:
        data: dict[str, Any] = self.client.get(url_of(self.project, "2", ".json")).json()
        return data


@pytest.fixture
def half(store_reports: Callable[..., object], signed_in: Client, project: Project) -> Half:
    return Half(store_reports, signed_in, project)


def shadow() -> Fields:
    measured: Fields = {
        "error": 1e-6,
        "tolerance": 1e-4,
        "samples": 101,
        "timed": 100,
        "compiled_seconds": 0.002,
        "eager_seconds": 0.005,
    }
    return parity_data(
        Parity(
            "shadow calls of forward",
            "passed",
            region="forward",
            kind="shadow",
            reference="eager",
            **measured,
        )
    )


def golden() -> Fields:
    return parity_data(
        Parity(
            "batch of 16", "passed", where="output", error=1e-6, tolerance=1e-4, reference="eager"
        )
    )


FEATURES: dict[str, tuple[Fields, str, list[str], list[str]]] = {
    "cache-miss explainer": (
        {"cache": MISS, "miss": "graph", "key": "k2"},
        "misses",
        ["2 of 2 starts with misses", "2 of 4 processes report cache results"],
        ["emptied", "4 compilations"],
    ),
    "cold-start budget": (
        {},
        "start",
        ["of 4 processes; the others reported no start"],
        [">0 s<"],
    ),
    "golden": (
        {"parities": [golden()]},
        "parity",
        ["passed on 2 <", "2 of 4 did not report this batch"],
        ["failed"],
    ),
    "shadow": (
        {"parities": [shadow()]},
        "parity",
        ["2 of 4 processes, newest", "2.5 times as fast"],
        ["failed"],
    ),
    "kernel choices": (
        {},
        "kernels",
        ["2 of 4 processes reported no autotuning", "the agent is older"],
        ["other ones"],
    ),
    "payback": (
        {},
        "pay",
        ["no eager run of the same region"],
        ["No payback", "infinite"],
    ),
    "what cannot be seen": (
        {},
        "blind",
        ["2 of 4 processes run an older agent", "2 of 2"],
        ["No telemetry gaps"],
    ),
}


@pytest.mark.parametrize(("told", "card", "said", "not_said"), FEATURES.values(), ids=FEATURES)
def test_a_card_states_how_many_processes_report(
    half: Half, told: Fields, card: str, said: list[str], not_said: list[str]
) -> None:
    text = part(half.run(**told), card)
    assert [words for words in said if words not in text] == [], text
    assert [words for words in not_said if words in text] == [], text


def test_the_compiled_share_is_relative_to_sampled_calls(half: Half) -> None:
    text = half.run(eager=100, cache=MISS, miss="graph")
    assert "of 2,000 calls with known mode, 4,000 in all (50%)" in text
    served = half.json()["served"]
    assert (served["share"], served["known"], served["calls"]) == (0.9, 2000, 4000)
    assert half.json()["known_of"] == {"processes": 4, "starts": 2, "caches": 2, "signals": 2}


def test_starts_without_a_cache_report_do_not_count_as_warm(half: Half) -> None:
    for place in range(3):
        half.new.start("2", ago=40 - place, cache={})
    text = half.run(cache=MISS, miss="graph")
    assert (
        "with warm caches" not in text
        and "A warm cache saves" not in text
        and "from all starts so far; from 5 starts" in text
    )


def test_guard_groups_count_reported_values_and_make_no_claim_about_older_processes(
    half: Half,
) -> None:
    half.run(
        kind="recompile",
        reason="tensor 'x' size mismatch at index 0. expected 4, actual 8",
        frame="score",
    )
    answer = half.client.get(f"/p/{half.project.slug}/findings/")
    assert answer.status_code == 200
    assert [(room["entries"], room["limit"]) for room in half.json()["headroom"]] == [
        (None, None)
    ], "no agent reports cache entries"


def test_a_missing_field_never_means_stuck_in_compilation(half: Half) -> None:
    half.run()
    states = {instance_state(one, one.last_seen_at) for one in Instance.objects.all()}
    assert (
        InstanceState.HUNG not in states and InstanceState.COMPILING not in states and clock.unix()
    )


def test_a_missing_value_is_not_listed_as_a_difference(half: Half) -> None:
    half.run(cache=MISS)
    bad = Instance.objects.filter(version__name="2", components={})
    assert bad.count() == 2
    bad.update(latched_eager=[{"frame": "score", "cause": "limit"}])
    Instance.objects.update(last_seen_at=clock.now())
    for address in ("instances/", "compare"):
        answer = half.client.get(
            f"/p/{half.project.slug}/models/{bad[0].model_id}/{address}", {"range": "24h"}
        ).content.decode()
        text = answer[answer.index('aria-labelledby="differs"') :].partition("</section>")[0]
        facts, _, attributes = text.partition("</ul>")
        text = facts.partition("<b>Configuration</b>")[0] + attributes  # configured keys may differ
        assert "instances" in text
        for name in ("max_autotune", "cache folder", "driver", "python", "torch", "not set"):
            assert name not in text, (
                address,
                name,
                re.findall(r"<th scope=\"row\">.*?</th>", text, re.DOTALL),
            )


def test_ranks_do_not_diverge_because_older_agents_report_less(half: Half) -> None:
    for story, offset in ((half.new, 0), (half.old, 2)):
        for place in range(2):
            ranked = {**SEES["identity"], "rank": offset + place, "world_size": 4, "job": "train-7"}
            story.start("2", ago=5, key="k1", cache=HIT, components=COMPONENTS, identity=ranked)
    fold_all()
    model = Instance.objects.all()[0].model_id
    answer = half.client.get(
        f"/p/{half.project.slug}/models/{model}/ranks/?job=train-7"
    ).content.decode()
    assert "have diverged" not in answer and answer.count("not reported") == 2
