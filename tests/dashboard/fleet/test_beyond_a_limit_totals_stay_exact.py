"""Limits: new names beyond a limit are counted under `other`; nothing is refused, and every total
is the same as without limits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from compilewatch.wire.messages import Compile, Finding, Report, Request
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from dashboard.common import clock
from dashboard.fleet import fold_attempts
from dashboard.fleet.fold.keys import OTHER, OTHER_INSTANCE_PREFIX
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import (
    ColdStart,
    CompileEvent,
    Deployment,
    FindingVersion,
    Instance,
    LimitReached,
    ModelVersion,
    ProcessMinute,
    RegionMinute,
    Series,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
    WatchedModel,
)
from dashboard.fleet.models import Finding as StoredFinding
from dashboard.fleet.selectors.judge_inputs.judge_minutes import read_instance_minutes
from dashboard.fleet.writers.limits import clear_known_keys
from dashboard.ingest.models import PoisonReport
from dashboard.projects.models import Project
from dashboard.projects.services import limits_set
from dashboard.regressions.due_deployments import list_due_deployments
from tests.dashboard.fleet.folder import folder_start
from tests.dashboard.fleet.totals import assert_all_counted
from tests.dashboard.requests import region_make

MakeRequest = Callable[..., Request]
Store = Callable[..., object]
FEW = {"environment": 2, "version": 3, "instance": 5, "series": 7, "finding": 4}
ADDED = (
    "windows",
    "covered",
    "compiles",
    "recompiles",
    "compile_seconds",
    "cache_misses",
    "graph_breaks",
    "fallbacks",
)

pytestmark = pytest.mark.django_db


def exploding(seed: int) -> Callable[[Report], None]:
    """Adds a region, a compilation and findings that differ from report to report."""
    rnd = random.Random(seed)

    def change(report: Report) -> None:
        report.regions.append(
            region_make(
                name=f"r{rnd.randrange(4)}", bucket=f"2^{rnd.randrange(4)}", seed=rnd.randrange(99)
            )
        )
        report.regions.append(
            region_make(
                name="inner",
                bucket=f"2^{rnd.randrange(3)}",
                outermost=False,
                seed=rnd.randrange(99),
            )
        )
        report.compiles.append(
            Compile(
                report.window[1],
                "0/0",
                "recompile",
                "ok",
                seconds={"total": 0.25},
                cache={"fx": "miss"},
            )
        )
        report.findings.append(
            Finding("graph_break", f"break {rnd.randrange(9)}", "m.py:1", rnd.randrange(5))
        )
        report.findings.append(Finding("fallback", f"op {rnd.randrange(4)}", "m.py:2", 1))

    return change


def fleet(make_request: MakeRequest, seed: int = 0) -> list[Request]:
    """Six versions of three models on nine instances in four environments."""
    return [
        make_request(
            model=f"m{n % 3}",
            version=f"v{n % 6}",
            instance=n,
            minutes=4,
            change=exploding(seed * 100 + n),
            gpu=f"gpu{n % 2}",
            environment=f"e{n % 4}",
        )
        for n in range(9)
    ]


def totals() -> dict[str, Any]:
    """All sums, regardless of the name under which they are counted."""
    found: dict[str, Any] = {}
    for table in (ProcessMinute, VersionProcessMinute, VersionProcessHour):
        rows = list(table._default_manager.values(*ADDED))
        found[table.__name__] = {
            name: pytest.approx(sum(row[name] for row in rows)) for name in ADDED
        }
    for table, time in ((VersionMinute, "minute"), (VersionHour, "hour")):
        rows = list(table._default_manager.values("calls", "series_id", time))
        outermost = dict(Series.objects.values_list("pk", "outermost"))
        calls: Counter[tuple[bool, int]] = Counter()
        for row in rows:
            calls[outermost[row["series_id"]], row[time]] += row["calls"]
        found[table.__name__] = calls
    kinds: Counter[tuple[str, str]] = Counter()
    for kind, count in FindingVersion.objects.values_list("finding__kind", "count"):
        kinds["version", kind] += count
    for kind, count in StoredFinding.objects.values_list("kind", "count"):
        kinds["finding", kind] += count
    return {**found, "findings": kinds, "compilations": CompileEvent.objects.count()}


def assert_within(limits: dict[str, int]) -> None:
    assert (
        Deployment.objects.exclude(environment=OTHER).values("environment").distinct().count()
        == limits["environment"]
    )
    assert ModelVersion.objects.exclude(name=OTHER).count() == limits["version"]
    assert (
        Instance.objects.exclude(instance_id__startswith=OTHER_INSTANCE_PREFIX).count()
        == limits["instance"]
    )
    assert Series.objects.exclude(region=OTHER).count() == limits["series"]
    assert StoredFinding.objects.exclude(fingerprint=OTHER).count() == limits["finding"]
    assert not PoisonReport.objects.exists()


@pytest.mark.parametrize("seed", range(4))
def test_totals_with_limits_are_totals_without(
    make_request: MakeRequest,
    make_project: Callable[[str], Project],
    store_reports: Store,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    rnd = random.Random(seed)
    free, narrow = make_project("free"), make_project("narrow")
    limits_set(project=narrow, changes=FEW, actor_name="test")
    monkeypatch.setattr(fold_attempts, "batch_size", lambda: rnd.choice((3, 7, 40)))
    now = clock.unix()
    monkeypatch.setattr(clock, "unix", lambda: now)
    requests = fleet(make_request, seed)
    store_reports(*requests, project=free)
    fold_all()
    expected = totals()
    assert_all_counted(requests)
    WatchedModel.objects.all().delete()
    for table in (
        RegionMinute,
        ProcessMinute,
        VersionProcessMinute,
        VersionProcessHour,
        VersionMinute,
        VersionHour,
        CompileEvent,
    ):
        table._default_manager.all().delete()
    pieces = [
        Request(1, request.sent, request.instance, [report])
        for request in requests
        for report in request.reports
    ]
    rnd.shuffle(pieces)
    for start in range(0, len(pieces), 10):
        store_reports(*pieces[start : start + 10], project=narrow)
        fold_all()
        if start == 20:
            clear_known_keys()
    assert totals() == expected
    assert_all_counted(requests)
    assert_within(FEW)
    reached = LimitReached.objects.filter(project=narrow)
    assert {row.kind for row in reached} == set(FEW) and all(
        row.count > 0 and row.example for row in reached
    )
    assert not ColdStart.objects.filter(
        instance__instance_id__startswith=OTHER_INSTANCE_PREFIX
    ).exists()


@pytest.mark.django_db(transaction=True)
def test_several_folders_at_once_admit_no_more_names_than_one(
    make_request: MakeRequest, project: Project, store_reports: Store
) -> None:
    limits_set(project=project, changes=FEW, actor_name="test")
    requests = [request for seed in range(3) for request in fleet(make_request, seed)][:9]
    more = [
        make_request(
            model=f"m{n % 5}", version=f"w{n}", instance=100 + n, minutes=2, change=exploding(n)
        )
        for n in range(24)
    ]
    store_reports(*requests, *more)
    workers = [folder_start(batch=20) for _ in range(2 if connection.vendor == "postgresql" else 1)]
    for worker in workers:
        out, err = worker.communicate(timeout=300)
        assert worker.returncode == 0, out + err
    fold_all()
    assert_all_counted([*requests, *more])
    assert_within(FEW)


def test_a_known_name_is_kept_when_the_limit_is_reached(
    make_request: MakeRequest, project: Project, store_reports: Store
) -> None:
    limits_set(project=project, changes={"version": 2}, actor_name="test")
    for version in ("1", "2", "3", "1"):
        store_reports(
            make_request(
                version=version,
                instance=int(version),
                first_seq=1 if version != "1" else 1 + Instance.objects.count(),
            )
        )
        fold_all()
    assert set(ModelVersion.objects.values_list("name", flat=True)) == {"1", "2", OTHER}
    assert list(WatchedModel.objects.values_list("name", flat=True)) == ["ranker"]
    limits_set(project=project, changes={"version": 3}, actor_name="test")
    store_reports(make_request(version="3", instance=3, first_seq=2))
    fold_all()
    assert ModelVersion.objects.filter(name="3").exists()


def test_a_model_beyond_the_limit_creates_no_model(
    make_request: MakeRequest, project: Project, store_reports: Store
) -> None:
    limits_set(project=project, changes={"version": 1}, actor_name="test")
    store_reports(
        make_request(model="a"),
        make_request(model="b", instance=1),
        make_request(model="c", instance=2),
    )
    fold_all()
    assert sorted(WatchedModel.objects.values_list("name", flat=True)) == ["a", OTHER]


def test_other_is_never_evaluated(
    make_request: MakeRequest, project: Project, store_reports: Store
) -> None:
    limits_set(
        project=project, changes={"version": 2, "series": 2, "instance": 2}, actor_name="test"
    )
    store_reports(
        *[
            make_request(version=f"{n}", instance=n, minutes=3, change=exploding(n))
            for n in range(4)
        ]
    )
    fold_all()
    assert Deployment.objects.filter(version__name=OTHER).exists()
    now_minute = max(Deployment.objects.values_list("last_minute", flat=True)) + 1
    due = list(list_due_deployments(now_minute=now_minute))
    assert due and all(
        not one.version.is_other for deployment, earlier in due for one in (deployment, *earlier)
    )
    judged = [row for deployment, _ in due for row in read_instance_minutes(
        deployment=deployment, baseline=None, from_minute=0, to_minute=now_minute)]  # fmt: skip
    assert judged and not any(
        row.region == OTHER or row.instance.startswith(OTHER_INSTANCE_PREFIX) for row in judged
    )


def test_an_environment_beyond_the_limit_keeps_its_versions_separate(
    make_request: MakeRequest, project: Project, store_reports: Store
) -> None:
    limits_set(project=project, changes={"environment": 1}, actor_name="test")
    store_reports(make_request(environment="production"))
    fold_all()
    store_reports(
        *[
            make_request(version=f"{n % 2}", instance=1 + n, environment=f"pod-{n}", minutes=3)
            for n in range(4)
        ],
        make_request(environment="production", instance=9, minutes=3),
    )
    fold_all()
    assert set(Deployment.objects.values_list("environment", "version__name")) == {
        ("production", "1"),
        (OTHER, "0"),
        (OTHER, "1"),
    }
    assert set(
        Instance.objects.exclude(environment="production").values_list("environment", flat=True)
    ) == {OTHER}
    reached = LimitReached.objects.get(project=project)
    assert (reached.kind, reached.count, reached.example) == ("environment", 4, "pod-3")
    now_minute = max(Deployment.objects.values_list("last_minute", flat=True)) + 1
    due = [
        (one.version.name, one.environment)
        for one, _ in list_due_deployments(now_minute=now_minute)
    ]
    assert due == [("1", "production")]


def test_a_banner_names_the_limit_that_was_reached(
    make_request: MakeRequest, project: Project, store_reports: Store, signed_in: Client
) -> None:
    limits_set(project=project, changes={"version": 2}, actor_name="test")
    store_reports(*[make_request(version=f"nightly-{n}", instance=n) for n in range(4)])
    assert "are grouped as" not in signed_in.get("/p/ranking/").content.decode()
    fold_all()
    for address in ("", "alerts/", "setup/", f"models/{WatchedModel.objects.get().pk}/"):
        text = signed_in.get(f"/p/ranking/{address}").content.decode()
        assert (
            "version: 2 of 2 in 30 days; new ones are grouped as <code>other</code>, the last one was nightly-3"
            in text
        )


def test_limits_are_shown_and_changed_by_a_command(project: Project) -> None:
    out = StringIO()
    call_command("limits", "--project", project.slug, "--set", "version=400", stdout=out)
    assert "version" in out.getvalue() and "400 in 30 days  (default 200)" in out.getvalue()
    for wrong, sentence in {
        "version=0": "version is 0, expected a whole number from 1 to 1,000,000.",
        "model=3": "model has no limit, expected one of environment, series, version, instance, finding.",
        "version=x": "version=x is not valid, expected a name and a whole number such as version=400.",
    }.items():
        with pytest.raises(CommandError, match=sentence.replace("(", r"\(")):
            call_command("limits", "--project", project.slug, "--set", wrong, stdout=out)
