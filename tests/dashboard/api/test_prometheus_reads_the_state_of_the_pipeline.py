"""/metrics: Prometheus' own parser reads it, its counters only rise, and only permitted readers can
see it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from compilewatch.wire.messages import Request
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from dashboard.common.heartbeat import heartbeat_write, record_fold_end
from dashboard.fleet.fold_service import fold_all
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.models import Intake, PoisonReport
from dashboard.projects.models import Project
from tests.dashboard.ingest.conftest import Endpoint, endpoint

__all__ = ["endpoint"]
pytestmark = pytest.mark.django_db(transaction=True)


def read(client: Client, **headers: str) -> dict[str, float]:
    """Every sample by name and labels, as Prometheus reads them."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200 and answer["Content-Type"].startswith(
        "text/plain; version=0.0.4"
    )
    families = list(text_string_to_metric_families(answer.content.decode()))
    assert all(family.documentation and family.type != "unknown" for family in families)
    return {
        sample.name.removeprefix("compilewatch_")
        + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_accepted_refused_and_folded_reports_are_counted(
    signed_in: Client, endpoint: Endpoint, make_request: Callable[..., Request], project: Project
) -> None:
    before = read(signed_in)
    assert (
        before["reports_accepted_total"]
        == before["inbox_rows"]
        == before["workers works"]
        == before["deliveries waiting"]
        == 0
    )
    for instance in range(3):
        endpoint.report(make_request(instance=instance, minutes=2))
    endpoint.send_json("[]")
    endpoint.send(b"", headers={"Authorization": "Bearer nonsense"})
    COMMITTER.stop()
    waiting = read(signed_in)
    assert waiting["reports_accepted_total"] == waiting["inbox_rows"] == 6
    assert waiting["refused_total bad_request"] == waiting["refused_total bad_key"] == 1
    assert 1 <= waiting["commit_seconds_count"] <= 3 and waiting["commit_seconds_sum"] > 0
    [intake] = Intake.objects.all()
    assert (intake.project_id, intake.reports, intake.bytes) == (
        project.pk,
        6,
        waiting["bytes_accepted_total"],
    )
    fold_all()
    record_fold_end()
    heartbeat_write(name="celery@here")
    after = read(signed_in)
    assert after["inbox_rows"] == after["inbox_age_seconds"] == 0
    assert (
        after["fold_lag_seconds_count"] == after["stage_done_total fold"] == 6
        and after["stage_seconds_sum fold"] > 0
    )
    assert after["workers works"] == 1
    assert all(
        after[name] >= value
        for name, value in waiting.items()
        if name.endswith(("_total", "_count", "_sum"))
    )


def test_counters_survive_deleted_rows(
    signed_in: Client, endpoint: Endpoint, make_request: Callable[..., Request]
) -> None:
    endpoint.report(make_request())
    endpoint.send_json("[]")
    COMMITTER.stop()
    found = read(signed_in)
    fold_all()
    Intake.objects.all().delete()
    assert read(signed_in)["reports_accepted_total"] == found["reports_accepted_total"] == 1


def test_quarantined_reports_are_counted(signed_in: Client, project: Project) -> None:
    from dashboard.common import clock

    PoisonReport.objects.create(
        project=project, shard=0, instance_id="x", seq_first=1, seq_last=1, received_at=clock.now(), clock_offset=0,
        identity=b"{}", report=b"{}", set_aside_at=clock.now(), error="KeyError",
    )  # fmt: skip
    assert read(signed_in)["reports_set_aside"] == 1


def test_only_a_read_key_opens_the_metrics(client: Client, api_key: str, ingest_key: str) -> None:
    assert read(client, authorization=f"Bearer {api_key}")
    for headers, status, code in (
        ({}, 401, "bad_key"),
        ({"authorization": "Bearer nonsense"}, 401, "bad_key"),
        ({"authorization": f"Bearer {ingest_key}"}, 403, "wrong_scope"),
    ):
        answer = client.get("/metrics", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    shown = client.get(f"/metrics?key={api_key}")
    assert (shown.status_code, shown.json()["code"]) == (400, "key_in_url")
    assert client.post("/metrics", headers={"authorization": f"Bearer {api_key}"}).status_code in (
        403,
        405,
    )


def test_a_read_key_comes_from_the_command_line(
    client: Client, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("key_make", "--name", "prometheus")
    assert read(client, authorization=f"Bearer {capsys.readouterr().out.strip()}")


def test_the_metric_of_the_autoscaler_manifests_exists(client: Client, api_key: str) -> None:
    documents = yaml.safe_load_all((settings.REPOSITORY / "docker/k8s/worker.yaml").read_text())
    [scaler] = [document for document in documents if document["kind"] == "HorizontalPodAutoscaler"]
    asked = {
        metric["external"]["metric"]["name"].removeprefix("compilewatch_")
        for metric in scaler["spec"]["metrics"]
    }
    assert asked and asked <= set(read(client, authorization=f"Bearer {api_key}"))
