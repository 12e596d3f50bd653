"""Prometheus' own linter accepts `/metrics`, with and without versions."""

from __future__ import annotations

import subprocess

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from dashboard.fleet.models import ModelVersion
from dashboard.projects.models import Project
from tests.dashboard.ui import stories
from tests.dashboard.ui.test_a_quantile_below_the_first_bucket_is_a_bound import models

__all__ = ["models"]
pytestmark = [pytest.mark.django_db, pytest.mark.needs("promtool")]


def complaints(client: Client) -> str:
    """The exit status and the output of `promtool check metrics`; "0" alone if it has no
    complaints."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=answer.content,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return f"{done.returncode} {(done.stdout + done.stderr).decode()}".strip()


def test_an_empty_dashboard_has_clean_metrics(signed_in: Client) -> None:
    assert complaints(signed_in) == "0"


def test_a_fleet_with_verdicts_has_clean_metrics(signed_in: Client, project: Project) -> None:
    stories.fleet(project, every=400)
    assert complaints(signed_in) == "0"
    sample = b'compilewatch_version_latency_seconds{model="ranker",project="ranking",quantile="0.5"'
    assert sample in signed_in.get("/metrics").content


def test_versions_of_an_engine_with_bounds_have_clean_metrics(
    signed_in: Client, models: str
) -> None:
    """`latency_below_seconds` has the quantile label as well."""
    assert (
        models
        and b"compilewatch_version_latency_below_seconds{" in signed_in.get("/metrics").content
    )
    assert complaints(signed_in) == "0"


HOSTILE = 'b"} 1\nevil_total{x="\\'


def test_a_hostile_name_remains_a_label_value(signed_in: Client, project: Project) -> None:
    stories.fleet(project, every=400)
    for version in ModelVersion.objects.filter(model__name="ranker"):
        ModelVersion.objects.filter(pk=version.pk).update(name=f"{version.name}{HOSTILE}")
    assert complaints(signed_in) == "0"
    families = list(text_string_to_metric_families(signed_in.get("/metrics").content.decode()))
    assert not [family for family in families if family.name.startswith("evil")]
    assert any(
        sample.labels.get("version", "").endswith(HOSTILE)
        for family in families
        for sample in family.samples
    )
