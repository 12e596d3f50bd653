"""Golden batches: one row per name and instance, the newest result wins in any order, names are
bounded, and a failure is one finding."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.messages import Fact, Report
from compilewatch.wire.numerics import MAX_GOLDENS, Parity, parity_data

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Finding, Instance, ParityResult
from dashboard.ui.pages.findings.remedies import find_remedy
from tests.dashboard.requests import request_make

pytestmark = pytest.mark.django_db
Told = dict[str, Any]
FAILED = Parity(
    "batch",
    "failed",
    where="output",
    error=0.2,
    eager_error=1e-3,
    tolerance=2e-3,
    reference="float64",
    nonfinite=3,
)
PASSED = Parity(
    "batch",
    "passed",
    where="output",
    error=1e-3,
    eager_error=1e-3,
    tolerance=2e-3,
    reference="float64",
    region="Net",
)


@pytest.fixture
def report_batches(store_reports: Callable[..., object]) -> Callable[..., None]:
    """`report_batches({minute: [data, ...]}, instance=1)` sends the results of an instance in each
    of its minutes, in any order."""
    end = clock.unix() // 60 * 60 - 600

    def sent(
        told: dict[int, list[Told]],
        instance: int = 1,
        order: list[int] | None = None,
        version: str = "1",
    ) -> None:
        for minute in order or sorted(told):

            def change(report: Report, minute: int = minute) -> None:
                report.facts = [Fact("parity", report.window[0], data) for data in told[minute]]

            request = request_make(
                end=end + minute * 60,
                first_seq=minute + 1,
                instance=instance,
                version=version,
                change=change,
            )
            request.sent = clock.unix()
            store_reports(request)
            fold_all()

    return sent


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_the_newest_wins_in_any_order(
    report_batches: Callable[..., None], order: list[int]
) -> None:
    report_batches(
        {0: [parity_data(PASSED)], 1: [parity_data(FAILED)], 2: [parity_data(PASSED)]}, order=order
    )
    row = ParityResult.objects.get()
    assert (row.name, row.state, row.told["region"], row.instance) == (
        "batch",
        "passed",
        "Net",
        Instance.objects.get(),
    )
    assert row.failed_at is not None and (row.at - row.failed_at).total_seconds() == 60


def test_failures_with_different_numbers_are_one_finding(
    report_batches: Callable[..., None],
) -> None:
    for instance in (1, 2, 3):
        report_batches(
            {
                0: [
                    parity_data(
                        Parity(
                            "batch", "failed", where="output", error=0.1 * instance, tolerance=1e-3
                        )
                    )
                ]
            },
            instance=instance,
        )
    finding = Finding.objects.get()
    assert (finding.kind, finding.text) == ("parity", "batch: another result than eager")
    assert ParityResult.objects.filter(state="failed").count() == 3
    assert "Hold the version back" in find_remedy(finding.kind, finding.text)


def test_passed_and_skipped_comparisons_are_no_finding(report_batches: Callable[..., None]) -> None:
    report_batches(
        {
            0: [
                parity_data(PASSED),
                parity_data(Parity("other", "not compared", why="two eager calls differ")),
            ]
        }
    )
    assert Finding.objects.count() == 0
    assert dict(ParityResult.objects.values_list("name", "state")) == {
        "batch": "passed",
        "other": "not compared",
    }


def test_agents_of_another_release_are_understood(report_batches: Callable[..., None]) -> None:
    report_batches(
        {
            0: [
                {"name": "old", "ok": False, "text": "off by 0.2"},
                {"name": "new", "state": "passed", "mood": {"a": [1]}},
                {"ok": True},
            ]
        }
    )
    assert dict(ParityResult.objects.values_list("name", "state")) == {
        "old": "failed",
        "new": "passed",
        "the compiled model": "passed",
    }
    assert Finding.objects.get().text == "old: off by 0.2"


def test_names_and_texts_are_bounded_and_shown_unchanged(
    report_batches: Callable[..., None],
) -> None:
    many = [{"name": f"n{number}", "state": "passed"} for number in range(MAX_GOLDENS + 9)]
    report_batches(
        {0: many, 1: many[::-1], 2: [{"name": "x" * 999, "state": "passed", "why": "\u202e" * 99}]}
    )
    assert ParityResult.objects.count() == MAX_GOLDENS
    report_batches(
        {
            0: [
                {
                    "name": "x" * 999,
                    "state": "failed",
                    "why": "a\u202eb",
                    "error": 1e999,
                    "nonfinite": -5,
                    "outputs": True,
                }
            ]
        },
        instance=2,
    )
    row = ParityResult.objects.get(instance__instance_id__endswith="2")
    assert len(row.name) == 200 and "\u202e" not in row.told["why"] and "nonfinite" not in row.told


def test_random_data_can_be_folded(report_batches: Callable[..., None]) -> None:
    rnd = random.Random(5)
    odd = [None, True, -1, 1 << 62, 1.5, "failed", "", [1], {"a": 1}]
    facts = [
        {key: rnd.choice(odd) for key in (*Parity.__dataclass_fields__, "ok", "text", "file")}
        for _ in range(60)
    ]
    report_batches({0: facts})
    assert ParityResult.objects.exists()
