"""The state of a finding depends on the versions that showed it and the versions that reported, not
on the order of arrival."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import Finding, Report, Request
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.common import clock
from dashboard.fleet import fold_attempts
from dashboard.fleet.finding_states import update_finding_states
from dashboard.fleet.fold.finding_state import (
    ABSENCE_MINUTES,
    RULE,
    FindingState,
    Presence,
    derive_finding_state,
)
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Finding as StoredFinding
from dashboard.fleet.models import FindingLife, FindingVersion, WatchedModel

MINUTE = 29_833_333
NOW = (MINUTE + 1) * 60.0 + 5
A, B, C = 1, 2, 3


@pytest.mark.parametrize(
    ("shown", "present", "life"),
    [
        ({A: 10}, [(A, 0, 500)], FindingState("new", 10)),
        ({A: 10, B: 400}, [(A, 0, 500), (B, 400, 600)], FindingState("ongoing", 10)),
        ({A: 10}, [(A, 0, 500), (B, 450, 559)], FindingState("new", 10)),
        ({A: 10}, [(A, 0, 500), (B, 450, 560)], FindingState("gone", 500)),
        ({A: 10}, [(A, 0, 900), (B, 450, 900)], FindingState("new", 10)),
        ({A: 10, C: 700}, [(A, 0, 500), (B, 450, 690), (C, 700, 720)], FindingState("back", 700)),
        ({A: 10, C: 530}, [(A, 0, 500), (B, 450, 529), (C, 530, 720)], FindingState("ongoing", 10)),
        ({A: 10, C: 700}, [(A, 0, 500), (C, 600, 720)], FindingState("back", 700)),
        ({A: 10}, [(A, 0, 500), (B, 450, 690), (A, 700, 720)], FindingState("back", 700)),
        (
            {A: 10, C: 700},
            [(A, 0, 500), (B, 450, 690), (C, 700, 720), (B, 721, 900)],
            FindingState("gone", 720),
        ),
        (
            {A: 10},
            [(A, 0, 500)] + [(B, 501 + 40 * n, 510 + 40 * n) for n in range(6)],
            FindingState("gone", 500),
        ),
        ({A: 10}, [(A, 0, 500), (B, 501, 540), (C, 501, 540)], FindingState("new", 10)),
        ({A: 10}, [(A, 0, 5)], FindingState("new", 10)),
    ],
)
def test_the_rule(
    shown: dict[int, int], present: list[tuple[int, int, int]], life: FindingState
) -> None:
    assert derive_finding_state(shown, [Presence(*one) for one in present]) == life


spans = st.builds(
    lambda version, first, length: Presence(version, first, first + length),
    st.integers(1, 4),
    st.integers(0, 600),
    st.integers(0, 200),
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.integers(1, 4), st.integers(0, 800), min_size=1),
    st.lists(spans, max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_facts_changes_nothing(
    shown: dict[int, int], present: list[Presence], rnd: random.Random
) -> None:
    life = derive_finding_state(shown, present)
    shuffled, keys = list(present), list(shown)
    rnd.shuffle(shuffled)
    rnd.shuffle(keys)
    assert derive_finding_state({key: shown[key] for key in keys}, shuffled) == life
    assert life.state in ("new", "ongoing", "gone", "back")


def breaks(*minutes: int) -> Callable[[Report], None]:
    """Adds a graph break to the reports of some minutes; the text contains a random address."""

    def change(report: Report) -> None:
        minute = round(report.window[1] / 60) - 1 - MINUTE
        if minute in minutes:
            report.findings.append(
                Finding(
                    "graph_break", f"Tensor.item() at 0x7f{minute % 256:02x}", "ranker/a.py:1", 2
                )
            )

    return change


def story(make_request: Callable[..., Request]) -> list[Request]:
    """Version 1 shows a finding, version 2 does not for two hours, version 3 shows it again;
    another finding exists only in staging."""
    return [
        replace(make_request(version=version, instance=number, minutes=last - first + 1, end=(MINUTE + last + 1) * 60.0, change=change,
                             host=f"gpu-{number}", environment=environment), sent=NOW)
        for number, (version, first, last, change, environment) in enumerate(
            [
                ("1", -400, -300, breaks(-390, -310), "production"),
                ("2", -299, -100, breaks(), "production"),
                ("3", -99, 0, breaks(-99, -50), "production"),
                ("3", -60, 0, breaks(-60), "staging"),
            ]
        )
    ]  # fmt: skip


def lives() -> dict[str, tuple[object, ...]]:
    rows = FindingLife.objects.select_related(
        "first_version", "last_version", "finding__first_version", "finding__last_version"
    )
    return {
        row.environment: (
            row.state,
            row.since_minute - MINUTE,
            row.first_version.name,
            row.last_version.name,
            row.finding.text,
            row.finding.first_version.name,
            row.finding.last_version.name,
            row.finding.count,
            sorted(
                FindingVersion.objects.filter(environment=row.environment).values_list(
                    "version__name", "count"
                )
            ),
        )
        for row in rows
    }


EXPECTED = {
    "production": (
        "back",
        -99,
        "1",
        "3",
        "Tensor.item() at 0x7f7a",
        "1",
        "3",
        10,
        [("1", 4), ("3", 4)],
    ),
    "staging": ("new", -60, "3", "3", "Tensor.item() at 0x7f7a", "1", "3", 10, [("3", 2)]),
}


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_arrival_gives_the_same_states(
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    monkeypatch.setattr(clock, "unix", lambda: NOW)
    rnd = random.Random(seed)
    monkeypatch.setattr(fold_attempts, "batch_size", lambda: rnd.choice((20, 60, 200)))
    pieces = [
        replace(request, reports=request.reports[start : start + 16])
        for request in story(make_request)
        for start in range(0, 208, 16)
    ]
    rnd.shuffle(pieces)
    for number, piece in enumerate(pieces):
        if piece.reports:
            store_reports(piece)
        if number % 8 == 0:
            fold_all()
            update_finding_states()
    fold_all()
    update_finding_states()
    assert lives() == EXPECTED
    assert update_finding_states() == 0 and StoredFinding.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(("tells", "state"), [("no", "new"), ("yes", "gone")])
def test_a_version_that_cannot_show_a_finding_does_not_make_it_gone(
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
    tells: str,
    state: str,
) -> None:
    monkeypatch.setattr(clock, "unix", lambda: NOW)
    shown, silent, *_ = story(make_request)
    store_reports(
        shown,
        replace(
            silent,
            instance=replace(
                silent.instance, capabilities={"compilations": (tells, "read from outside")}
            ),
        ),
    )
    fold_all()
    update_finding_states()
    assert [said[0] for said in lives().values()] == [state]


@pytest.mark.django_db
def test_the_model_page_shows_the_state_its_date_and_the_rule(
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
    signed_in: Client,
) -> None:
    monkeypatch.setattr(clock, "unix", lambda: NOW)
    store_reports(*story(make_request))
    fold_all()
    address = f"/p/ranking/models/{WatchedModel.objects.get().pk}/findings/?env=production"
    assert "</svg>back</span>" not in signed_in.get(address).content.decode()
    update_finding_states()
    text = signed_in.get(address).content.decode()
    assert "</svg>back</span> since <time" in text and RULE in text
    assert "first in <bdi>1 on gpu-0</bdi>, last in <bdi>3 on gpu-2</bdi>" in text


@pytest.mark.django_db
def test_a_worker_that_read_too_early_leaves_the_work_due(
    make_request: Callable[..., Request],
    store_reports: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "unix", lambda: NOW)
    first, *rest = story(make_request)
    store_reports(first)
    fold_all()
    update_finding_states()
    WatchedModel.objects.update(lives_revision=0)
    store_reports(*rest)
    fold_all()
    assert update_finding_states() == 2 and lives() == EXPECTED
    assert ABSENCE_MINUTES == 60
