"""State of an instance: the first matching rule decides, and the Model page shows the state and its
problems."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from compilewatch.wire.messages import Fact, Losses, Report, Request
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Instance, InstanceState, WatchedModel
from dashboard.fleet.selectors.instances.instance_states import RULES, SEVERITY, instance_state
from dashboard.ingest.models import Sender
from tests.dashboard.requests import region_make

MakeRequest = Callable[..., Request]
Store = Callable[..., object]
Change = Callable[[Report], None]

pytestmark = pytest.mark.django_db


def ready(report: Report) -> None:
    report.facts.append(Fact("ready", report.window[0], {}))


def in_eager_fallback(report: Report) -> None:
    ready(report)
    report.facts.append(
        Fact("latched_eager", report.window[1], {"frame": "score", "cause": "limit"})
    )


def eager(share: float) -> Change:
    def change(report: Report) -> None:
        ready(report)
        count = round(100 * share)
        report.regions[:] = [region_make(compiled=100 - count, eager_by={"stance": count})]

    return change


def compiling(seconds: float, usual: float | None = None) -> Change:
    def change(report: Report) -> None:
        ready(report)
        (
            report.gauges.compiling_for,
            report.gauges.compiling_frame,
            report.gauges.compiling_usual,
        ) = seconds, "score", usual

    return change


def starting(report: Report) -> None:
    """Neither calls nor compiles."""
    report.regions.clear()


def ended(report: Report) -> None:
    report.facts.append(Fact("ended", report.window[1], {"code": 0}))


def nothing(report: Report) -> None:
    """Leaves the report unchanged."""


CASES: list[tuple[InstanceState, Change, dict[str, Any], float]] = [
    (InstanceState.WARMING, nothing, {}, 0),
    (InstanceState.HEALTHY, ready, {}, 0),
    (InstanceState.HEALTHY, ready, {}, 179),
    (InstanceState.HEALTHY, nothing, {}, 170),
    (InstanceState.HEALTHY, eager(0.02), {}, 0),
    (InstanceState.DEGRADED, eager(0.03), {}, 0),
    (InstanceState.DEGRADED, eager(0.5), {}, 0),
    (InstanceState.DEGRADED, in_eager_fallback, {}, 0),
    (InstanceState.EAGER, eager(0.51), {}, 0),
    (InstanceState.COMPILING, compiling(5.0), {}, 0),
    (InstanceState.HUNG, compiling(901.0), {}, 0),
    (InstanceState.HUNG, compiling(130.0, usual=2.0), {}, 0),
    (InstanceState.SILENT, compiling(901.0), {}, 181),
    (InstanceState.STARTING, starting, {}, 0),
    (InstanceState.STARTING, starting, {}, 179),
    (InstanceState.SILENT, starting, {}, 181),
    (InstanceState.HEALTHY, starting, {"role": "data worker"}, 0),
    (InstanceState.ENDED, ended, {}, 0),
    (InstanceState.ENDED, ended, {}, 9000),
    (InstanceState.BLIND, ready, {"capabilities": {"compiled_calls": ("no", "torch 2.4")}}, 0),
]


@pytest.mark.parametrize(
    ("state", "change", "identity", "after"),
    CASES,
    ids=[f"{case[0]}-{n}" for n, case in enumerate(CASES)],
)
def test_the_first_matching_rule_gives_the_state(
    make_request: MakeRequest,
    store_reports: Store,
    state: InstanceState,
    change: Change,
    identity: dict[str, Any],
    after: float,
) -> None:
    minutes = 3 if change is nothing and after else 1
    store_reports(make_request(change=change, minutes=minutes, **identity))
    fold_all()
    instance = Instance.objects.get()
    if change is nothing and after:
        instance.started_at -= timedelta(minutes=10)
    assert instance_state(instance, instance.last_seen_at + timedelta(seconds=after)) == state


def test_every_state_has_a_rule_and_a_place_in_the_order() -> None:
    assert {rule.state for rule in RULES} == set(SEVERITY) == set(InstanceState)
    assert {case[0] for case in CASES} == set(InstanceState)


def test_an_older_report_changes_no_state(make_request: MakeRequest, store_reports: Store) -> None:
    newer, older = (
        make_request(change=ready, first_seq=2),
        make_request(change=eager(1.0), first_seq=1),
    )
    store_reports(newer)
    fold_all()
    store_reports(older)
    fold_all()
    assert instance_state(Instance.objects.get(), clock.now()) == InstanceState.HEALTHY


def test_the_model_page_shows_each_instance_with_its_problems(
    make_request: MakeRequest,
    store_reports: Store,
    signed_in: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lossy(report: Report) -> None:
        ready(report)
        report.losses = Losses(3, 1, 0, 0)

    now = clock.unix()
    monkeypatch.setattr(clock, "unix", lambda: now)
    store_reports(
        make_request(host="sound", instance=0, change=ready, end=now),
        make_request(host="slow-clock", instance=1, change=ready, end=now - 40),
        make_request(host="fast-clock", instance=2, change=ready, end=now + 4),
        make_request(host="spooled", instance=3, change=ready, end=now, minutes=30),
        make_request(host="lossy", instance=4, change=lossy, end=now),
        make_request(host="stuck", instance=5, change=compiling(901.0), end=now),
    )
    fold_all()
    Sender.objects.filter(instance_id__endswith="4").update(missing=2)
    text = unescape(
        signed_in.get(
            f"/p/ranking/models/{WatchedModel.objects.get().pk}/instances/"
        ).content.decode()
    ).replace("\u00a0", " ")
    rows = {host: text.split(f"<bdi>{host} / rank 0</bdi>")[1].split("</tr>")[0] for host in
            ("sound", "slow-clock", "fast-clock", "spooled", "lossy", "stuck")}  # fmt: skip
    assert "6 instances" in text
    assert "1 hung instance vs 5 other instances" in text
    assert "</svg>healthy</span>" in rows["sound"]
    assert all(word not in rows["sound"] for word in ("clock", "late", "missing"))
    assert "clock 40 s behind" in rows["slow-clock"] and "clock" not in rows["fast-clock"]
    assert re.search("2[89] windows late", rows["spooled"])
    assert "2 reports missing, 3 reports merged, 1 event without its sample" in rows["lossy"]
    assert "</svg>hung</span>" in rows["stuck"] and "score for 15 min" in rows["stuck"]
    assert (
        text.index("stuck / rank 0") < text.index("lossy / rank 0") < text.index("sound / rank 0")
    )
    assert all(rule.words in text for rule in RULES)
