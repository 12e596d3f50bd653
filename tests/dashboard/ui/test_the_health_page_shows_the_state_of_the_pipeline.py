"""The Health page: one sentence about the state of the pipeline, and the results of this project's
reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape

import pytest
from compilewatch.wire.messages import Request
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock, health
from dashboard.common.heartbeat import heartbeat_write, record_fold_end
from dashboard.common.models import Heartbeat
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Instance, LimitReached, StorageMeasure
from dashboard.fleet.storage_sampling import storage_measure
from dashboard.ingest.intake_counters import drain_intake, record_intake
from dashboard.ingest.models import InboxRow, PoisonReport
from dashboard.ingest.services import intake_write, refusals_write
from dashboard.projects.models import Project

HEALTH = "/p/ranking/health/"


@pytest.fixture
def worker(db: None) -> None:
    """A worker that processes reports, and beat of the previous release."""
    record_fold_end()
    heartbeat_write(name="celery@gpu-host")
    Heartbeat.objects.create(name="beat@gpu-host", kind="beat", seen_at=clock.now())


def page(client: Client) -> str:
    answer = client.get(HEALTH)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", answer.content.decode().replace("\u00a0", " "))


def poison(project: Project, error: str) -> PoisonReport:
    return PoisonReport.objects.create(
        project=project, shard=0, instance_id="1" * 26, seq_first=4, seq_last=5, received_at=clock.now(), clock_offset=0,
        identity=b"{}", report=b"{}", set_aside_at=clock.now(), error=error,
    )  # fmt: skip


def test_a_healthy_server(signed_in: Client, worker: None) -> None:
    html = page(signed_in)
    assert "</svg>HEALTHY<" in html and "DEGRADED" not in html
    assert "1 worker is working." in html and "celery@gpu-host" in html
    assert "beat@gpu-host" not in html
    assert "None. Every accepted report was processed." in html
    assert "No reports were accepted or refused in the last 24 hours." in html


@pytest.mark.parametrize(
    ("seen", "folded", "sentence"),
    [
        (45, 45, "No worker has been online for 45 s"),
        (3000, 3000, "No worker has been online for 50 min"),
        (10_800, 10_800, "No worker has been online for 3 h"),
        (2, 120, "none has finished a fold in the last minute"),
    ],
)
def test_an_offline_or_idle_worker(
    signed_in: Client, worker: None, seen: int, folded: int, sentence: str
) -> None:
    now = clock.now()
    Heartbeat.objects.filter(kind="worker").update(
        seen_at=now - timedelta(seconds=seen), folded_at=now - timedelta(seconds=folded)
    )
    html = page(signed_in)
    assert "DEGRADED" in html and sentence in html


def test_a_server_without_any_worker(signed_in: Client) -> None:
    html = page(signed_in)
    assert (
        "No worker was online in the last day" in html
        and "manage.py serve" in html
        and "<small>never</small>" in html
    )


def test_reports_with_too_much_lag(
    signed_in: Client,
    worker: None,
    store_reports: Callable[..., object],
    make_request: Callable[..., Request],
) -> None:
    store_reports(make_request(minutes=3))
    InboxRow.objects.update(received_at=clock.now() - timedelta(seconds=150))
    html = page(signed_in)
    assert re.search(r"The oldest report has waited 15\d s to be folded", html) and re.search(
        r"2 min 3\d s", html
    )


def test_the_state_of_redis_is_reported_by_workers(signed_in: Client, settings: object) -> None:
    assert "not used in embedded mode" in page(signed_in)
    settings.EMBEDDED = False  # type: ignore[attr-defined]
    assert "unknown: no worker reports" in page(signed_in)
    heartbeat_write(name="celery@gpu-host", broker="redis:6379")
    text = page(signed_in)
    assert "redis:6379 does not respond; workers poll without Redis" in text
    assert "Redis at redis:6379 does not respond. Workers poll on a timer until it does" in text
    heartbeat_write(name="celery@gpu-host")
    assert "<dt>Redis</dt><dd>answers</dd>" in page(signed_in)


def test_a_slow_database(signed_in: Client, worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SLOW_DATABASE_S", 0.0)
    assert "The database is slow:" in page(signed_in)


def test_an_almost_full_disk(
    signed_in: Client, worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.search(
        r"[0-9.]+ GiB of [0-9.]+ GiB are free on the disk of the data folder\.", page(signed_in)
    )
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 1 << 60)
    monkeypatch.setattr(health, "MIN_FREE_RATIO", 1.1)
    html = page(signed_in)
    assert "DEGRADED" in html and html.count("The disk of the data folder is nearly full:") == 2, (
        "at the top, and in the list"
    )


def test_accepted_and_refused_reports(
    signed_in: Client, project: Project, other_project: Project
) -> None:
    hour = int(clock.unix() // 3600)
    record_intake(project_id=project.pk, reports=1234, size=5 << 20)
    intake_write(drain_intake())
    refusals_write(
        {
            (project.pk, hour, "too_old"): 3,
            (project.pk, hour - 1, "too_old"): 4,
            (other_project.pk, hour, "bad_request"): 9,
        }
    )
    html = page(signed_in)
    assert (
        "1,234 accepted, 5 MiB; quota" in html
        and "<code>too_old</code>" in html
        and "bad_request" not in html
    )
    assert re.search(r'data-l="This hour">3</td><td class="r num" data-l="24 hours">7<', html)


def test_quarantined_reports_show_the_error_and_the_command_to_process_them(
    signed_in: Client, project: Project, other_project: Project
) -> None:
    poison(project, "KeyError: <b>regions</b>")
    poison(other_project, "secret of another project")
    html = page(signed_in)
    assert (
        "KeyError: &lt;b&gt;regions&lt;/b&gt;" in html
        and "windows 4 to 5" in html
        and "manage.py refold" in html
    )
    assert "secret" not in html and "and 1 in other projects" in html


def test_losses_that_agents_reported(
    signed_in: Client, store_reports: Callable[..., object], make_request: Callable[..., Request]
) -> None:
    store_reports(make_request(instance=1), make_request(instance=2))
    fold_all()
    Instance.objects.filter(instance_id__endswith="1").update(
        host="gpu-07", truncated_events=12, spool_errors=2
    )
    html = page(signed_in)
    assert (
        "gpu-07" in html
        and "12 events over the limit of a report interval" in html
        and "2 errors of the disk buffer" in html
    )
    assert html.count('data-l="Lost"') == 1


def test_names_over_each_limit(signed_in: Client, project: Project, other_project: Project) -> None:
    assert "No limit was exceeded." in page(signed_in)
    now, today = clock.now(), int(clock.unix() // 86400)
    for day, kind, count, example in (
        (today, "version", 3, "nightly-9"),
        (today - 6, "version", 40, "nightly-3"),
        (today - 7, "version", 500, "nightly-1"),
        (today - 1, "environment", 7, "pod-<b>7"),
    ):
        LimitReached.objects.create(
            project=project, kind=kind, day=day, count=count, example=example, last_at=now
        )
    LimitReached.objects.create(
        project=other_project, kind="series", day=today, count=1, example="secret", last_at=now
    )
    html = page(signed_in)
    assert re.search(
        r'>version</th>.*?>200<.*?data-l="Today">3</td>.*?data-l="7 days">43</td>.*?nightly-9<',
        html,
    )
    assert re.search(
        r'>environment</th>.*?>20<.*?data-l="Today">0</td>.*?data-l="7 days">7</td>.*?pod-&lt;b&gt;7<',
        html,
    )
    assert (
        "secret" not in html
        and f"manage.py limits --project {project.slug} --set environment=NUMBER" in html
    )


def test_reached_limits_are_stated_on_every_page_in_one_note(
    signed_in: Client, project: Project
) -> None:
    def note() -> str:
        found = re.findall(r'<p class="note caution gap-below">(.*?)</p>', page(signed_in))
        assert len(found) == 1
        return re.sub("<.*?>", "", unescape(found[0]))

    now = clock.now()
    for kind in ("version", "series", "finding"):
        told = {
            "day": int(now.timestamp() // 86400),
            "count": 1,
            "example": f"the last {kind}",
            "last_at": now,
        }
        LimitReached.objects.create(project=project, kind=kind, **told)
        if kind == "version":
            assert note().startswith(
                "version: 200 of 200 in 30 days; new ones are grouped as other, the last one was the last version. Totals"
            )
    said = "Limits reached: finding, series, version. New series are grouped as other (counts). Totals stay exact; other is not evaluated."
    assert note() == said and 'href="/p/ranking/health/#over"' in page(signed_in)


def test_storage_per_day_and_the_time_of_its_measurement(
    signed_in: Client, store_reports: Callable[..., object], make_request: Callable[..., Request]
) -> None:
    assert "Not measured yet." in page(signed_in)
    assert storage_measure()
    assert "unknown: no data yet" in page(signed_in)
    store_reports(make_request(minutes=20))
    fold_all()
    assert storage_measure() and not storage_measure()
    StorageMeasure.objects.update(measured_at=clock.now() - timedelta(hours=2))
    StorageMeasure.objects.filter(of="instance").update(bytes_a_day=700 << 10)
    html = page(signed_in)
    assert (
        "<dt>One instance</dt><dd>700 KiB " in html
        and "target: at most 1 MiB" in html
        and "target: at most 4 MiB" in html
    )
    assert re.search(r"Measured <time[^>]*>2 h ago", html)


@pytest.mark.django_db
def test_measuring_takes_at_most_a_thousandth_of_the_time(
    store_reports: Callable[..., object], make_request: Callable[..., Request]
) -> None:
    store_reports(make_request())
    fold_all()
    assert storage_measure()
    StorageMeasure.objects.update(measured_at=clock.now() - timedelta(hours=2), took=60.0)
    assert not storage_measure()
    StorageMeasure.objects.update(took=6.0)
    assert storage_measure()


def test_the_short_address_redirects_to_the_page(signed_in: Client) -> None:
    assert signed_in.get("/health/").headers["Location"] == HEALTH
    assert HEALTH in signed_in.get("/p/ranking/").content.decode()


def test_the_page_needs_a_fixed_number_of_queries(
    signed_in: Client, project: Project, worker: None
) -> None:
    page(signed_in)
    with CaptureQueriesContext(connection) as caught:
        page(signed_in)
    few = len(caught.captured_queries)
    for number in range(30):
        poison(project, f"error {number}")
        heartbeat_write(name=f"celery@{number}")
    with CaptureQueriesContext(connection) as caught:
        page(signed_in)
    assert len(caught.captured_queries) <= few + 1
