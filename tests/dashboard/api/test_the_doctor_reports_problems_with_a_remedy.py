"""`manage.py doctor`: one sentence for each requirement of a dashboard, as text or JSON, and an
exit code."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from dashboard.alerts.models import Channel
from dashboard.api import doctor as looks
from dashboard.common import clock, health
from dashboard.common.health import Check
from dashboard.common.heartbeat import heartbeat_write, record_fold_end
from dashboard.environment.groups import Oidc
from dashboard.ingest.models import PoisonReport
from dashboard.projects.models import Project
from tests.dashboard.common.wire_server import answering, wire_server
from tests.dashboard.ui.test_a_page_without_its_database_shows_an_error import database_fails
from tests.flow.stack import free_port

NAMES = [
    *(
        "settings",
        "database",
        "migrations",
        "inbox",
        "judge",
        "workers",
        "quarantine",
        "redis",
        "clock",
        "disk",
        "secrets",
        "mail",
        "sign-in",
    ),
    "outbound",
]


def run_doctor(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("doctor", *words, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_a_healthy_dashboard_is_reported_as_healthy(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("SLOW_DATABASE_S", "WORKER_GONE_AFTER_S", "FOLD_EXPECTED_WITHIN_S"):
        monkeypatch.setattr(health, limit, 3600.0)  # on a busy machine as well
    record_fold_end()
    heartbeat_write(name="worker")
    code, text = run_doctor()
    assert code == 0, text
    assert "All checks passed." in text and all(f" {name} " in text for name in NAMES)
    code, text = run_doctor("--json")
    assert code == 0 and [check["name"] for check in json.loads(text)["checks"]] == NAMES


def test_without_a_worker_the_exit_code_is_one(project: Project) -> None:
    code, text = run_doctor("--json")
    bad = [check for check in json.loads(text)["checks"] if not check["ok"]]
    assert code == 1 and "workers" in [check["name"] for check in bad]
    assert "No worker was online" in run_doctor()[1]


def test_a_database_that_does_not_answer_is_a_sentence_and_other_checks_run(
    project: Project,
) -> None:
    from django.db import OperationalError

    with database_fails(OperationalError("gone"), on=""):
        code, text = run_doctor()
    assert code == 1 and "the database does not respond" in text and "ok    disk" in text


def test_other_problems_are_named(project: Project, settings: LazySettings, tmp_path: Path) -> None:
    settings.MAIL_READY, settings.EMAIL_BACKEND = (
        True,
        "django.core.mail.backends.smtp.EmailBackend",
    )
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    assert "refuses the connection" in looks.mail_check().sentence
    settings.EMBEDDED, settings.CELERY_BROKER_URL = (
        False,
        f"redis://:verysecret@127.0.0.1:{free_port()}/0",
    )
    assert not looks.redis_check().ok and "verysecret" not in looks.redis_check().sentence
    Channel.objects.create(
        project=project,
        kind="webhook",
        name="x",
        address="https://127.0.0.1:8443/verysecret",
        created_at=clock.now(),
    )
    found = looks.outbound_check()
    assert (
        not found.ok and "127.0.0.1:8443" in found.sentence and "verysecret" not in found.sentence
    )


def test_a_world_readable_secret_and_a_full_disk_are_named(
    settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    monkeypatch.setenv("COMPILEWATCH_SECRET_KEY_FILE", str(secret))
    assert str(secret) in looks.secrets_check().sentence
    secret.chmod(0o640)
    assert looks.secrets_check().ok
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 1 << 60)
    monkeypatch.setattr(health, "MIN_FREE_RATIO", 1.1)
    full = health.disk_check()
    assert isinstance(full, Check) and not full.ok and "nearly full" in full.sentence


@pytest.mark.postgresql_only
@pytest.mark.parametrize("wrong", [-90.0, 90.0])
def test_a_wrong_clock_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    right = looks.clock_check()
    assert right.ok and right.value is not None and abs(right.value) < looks.MAX_CLOCK_DIFFERENCE_S
    real = clock.unix
    monkeypatch.setattr(clock, "unix", lambda: real() + wrong)
    code, text = run_doctor("--json")
    [found] = [check for check in json.loads(text)["checks"] if check["name"] == "clock"]
    assert code == 1 and not found["ok"] and abs(found["value"] + wrong) < 5
    assert (
        f"The database's clock is {found['value']:+.1f} s from this machine's" in found["sentence"]
        and "NTP" in found["sentence"]
    )


def test_an_unreachable_or_wrong_sign_in_provider_is_named(settings: LazySettings) -> None:
    def check_provider(url: str) -> Check:
        settings.ENV = replace(settings.ENV, oidc=Oidc(url, "client", "secret", "Example"))
        return looks.provider_check()

    away = check_provider("https://127.0.0.1:9/realms/team")
    assert (
        not away.ok
        and "COMPILEWATCH_OIDC_URL does not respond at https://127.0.0.1:9/realms/team/.well-known"
        in away.sentence
    )
    with wire_server(
        answering(b'HTTP/1.1 200 OK\r\n\r\n{"issuer": "https://elsewhere.example"}')
    ) as server:
        other = check_provider(f"http://127.0.0.1:{server.port}/realms/team")
    assert not other.ok and "issuer is 'https://elsewhere.example'" in other.sentence


def test_quarantined_reports_are_named_with_their_reason(project: Project) -> None:
    for number, error in enumerate(
        ["DataError: integer\nout of range", "DataError: integer\nout of range", "KeyError: 'x'"]
    ):
        PoisonReport.objects.create(
            project=project, shard=0, instance_id=f"{number:026d}", seq_first=1, seq_last=1, received_at=clock.now(), clock_offset=0.0,
            identity=b"{}", report=b"{}", set_aside_at=clock.now(), error=error,
        )  # fmt: skip
    [check] = [
        check
        for check in json.loads(run_doctor("--json")[1])["checks"]
        if check["name"] == "quarantine"
    ]
    assert not check["ok"] and check["value"] == 3
    assert check["sentence"].startswith(
        "3 reports are quarantined. Most frequent reason (2): DataError: integer out of range. Fix the cause"
    )
