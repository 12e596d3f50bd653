"""/metrics reports verdicts and key metrics of the reader's own versions, and the Grafana dashboard
queries only existing names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from dashboard.api import prometheus_versions
from dashboard.projects.models import Project
from dashboard.projects.services import key_create
from tests.architecture.tree import REPOSITORY
from tests.dashboard.ui import stories

pytestmark = pytest.mark.django_db
FILE = REPOSITORY / "docker/grafana/compilewatch.json"
WORDS = {"sum", "max", "by", "or", "vector", "rate", "label_values"}


def scrape(client: Client, key: str = "") -> dict[str, Metric]:
    answer = client.get("/metrics", headers={"authorization": f"Bearer {key}"} if key else {})
    assert answer.status_code == 200
    return {
        family.name: family for family in text_string_to_metric_families(answer.content.decode())
    }


def samples(families: dict[str, Metric], name: str) -> list[tuple[dict[str, str], float]]:
    return [(sample.labels, sample.value) for sample in families[f"compilewatch_{name}"].samples]


def expressions(node: Any) -> Iterator[str]:
    """Every expression and variable query of the dashboard."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in ("expr", "query") and isinstance(value, str) and "compilewatch" in value:
                yield value
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def names_in(expression: str) -> tuple[set[str], set[str]]:
    """Names of metrics and labels in an expression; any other word fails."""
    bare = re.sub(r'"[^"]*"|\[\w+\]|\{\{\w+\}\}', " ", expression)
    words = set(re.findall(r"[A-Za-z_]\w*", bare)) - WORDS
    names = {word for word in words if word.startswith("compilewatch_")}
    return names, words - names


def test_verdicts_and_metrics_of_live_deployments_are_reported(
    signed_in: Client, project: Project
) -> None:
    stories.fleet(project, every=400)
    families = scrape(signed_in)
    verdicts = {
        (one["model"], one["version"]): one["verdict"]
        for one, value in samples(families, "version_verdict")
        if value == 1
    }
    assert (
        verdicts["ranker", "2026.11.3"] == "roll_back"
        and verdicts["vit-embed", "2026.11.2"] == "healthy"
    )
    assert (
        verdicts["ranker", "2026.11.2"] == "not_enough_data"
        and ("vit-embed", "2026.11.1") not in verdicts
    )
    p50 = {
        one["version"]: value
        for one, value in samples(families, "version_latency_seconds")
        if one["model"] == "ranker" and one["quantile"] == "0.5"
    }
    assert p50["2026.11.3"] == pytest.approx(0.0184, rel=0.1) and p50["2026.11.2"] == pytest.approx(
        0.014, rel=0.1
    )
    shares = {
        one["version"]: value
        for one, value in samples(families, "version_compiled_share")
        if one["model"] == "ranker"
    }
    assert shares["2026.11.3"] == pytest.approx(0.72, abs=0.02) and shares["2026.11.2"] == 1
    assert samples(families, "alerts_unresolved") == [
        ({"project": "ranking", "model": "ranker", "severity": "roll_back"}, 1)
    ]
    assert (
        sum(value for one, value in samples(families, "instances") if one["model"] == "ranker")
        == 12
    )
    assert samples(families, "deployments_left_out") == [({"project": "ranking"}, 0)]


def test_a_reader_gets_only_their_own_projects(
    client: Client, project: Project, other_project: Project, api_key: str
) -> None:
    stories.fleet(other_project, every=400)
    assert not samples(scrape(client, api_key), "version_verdict")
    theirs = scrape(client, key_create(project=other_project, kind="api", name="theirs")[1])
    assert {one["project"] for one, _ in samples(theirs, "version_verdict")} == {other_project.slug}


def test_the_number_of_series_is_bounded(
    signed_in: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    stories.fleet(project, every=400)
    monkeypatch.setattr(prometheus_versions, "MAX_DEPLOYMENTS", 2)
    families = scrape(signed_in)
    assert len(samples(families, "version_verdict")) == 2
    [(_, left_out)] = samples(families, "deployments_left_out")
    assert left_out == 3


def test_every_name_in_the_dashboard_is_in_a_scrape(signed_in: Client, project: Project) -> None:
    stories.fleet(project, every=400)
    given: dict[str, set[str]] = {}
    for family in scrape(signed_in).values():
        given.setdefault(f"{family.name}_total" if family.type == "counter" else family.name, set())
        for sample in family.samples:
            given.setdefault(sample.name, set()).update(sample.labels)
    dashboard = json.loads(FILE.read_text())
    found = list(expressions(dashboard))
    assert len(found) > 15
    for expression in found:
        names, labels = names_in(expression)
        assert names and names <= set(given), expression
        known = set().union(*(given[name] for name in names)) | (
            {"code"} if "compilewatch_refused_total" in names else set()
        )
        assert labels <= known, expression
    legends = set(re.findall(r"\{\{(\w+)\}\}", FILE.read_text()))
    assert legends <= {"model", "version", "state", "code"}
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) and all(
        panel["title"] and panel["fieldConfig"]["defaults"]["unit"] for panel in panels
    )
