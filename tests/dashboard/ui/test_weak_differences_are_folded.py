"""Differences explained by chance are collapsed; a baseline is not shown as a candidate without
data."""

from __future__ import annotations

import re

from django.template.loader import render_to_string
from django.test import Client

from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from dashboard.ui.pages.instances.trait_differences import compare_traits
from tests.dashboard.page_source import unwrap_html
from tests.dashboard.ui import stories

WORDS = {"bad_words": "of the new version", "good_words": "of the old version"}


def shown(bad: int, good: int, *, clear: bool) -> str:
    traits = {
        one: {"host": f"gpu-{one}"} | ({"driver": "2" if one < bad else "1"} if clear else {})
        for one in range(bad + good)
    }
    page = compare_traits(traits, range(bad), range(bad, bad + good), **WORDS)
    context = {"differs": page, "title": "What changed?"}
    return unwrap_html(render_to_string("ui/parts/differs.html", context))


def test_a_different_host_for_each_instance_is_collapsed() -> None:
    html = shown(3, 3, clear=False)
    head, folded = html.split("<details", 1)
    count = folded.count('<tr><th scope="row">')
    assert count and f"Show {count} weak difference{'s' if count > 1 else ''}" in folded
    assert "host" not in head and "No attribute separates them clearly." in head


def test_a_clear_difference_is_shown_expanded() -> None:
    head = shown(12, 12, clear=True).split("<details", 1)[0]
    assert ">driver<" in head and ">clear<" in head and "No attribute" not in head


def test_without_weak_differences_nothing_is_collapsed() -> None:
    page = compare_traits({1: {"host": "a"}, 2: {"host": "a"}}, [1], [2], **WORDS)
    assert "<details" not in render_to_string(
        "ui/parts/differs.html", {"differs": page, "title": "What changed?"}
    )


def test_the_baseline_is_called_baseline(signed_in: Client, project: Project, db: None) -> None:
    alert = stories.fleet(project, every=400)
    verdict = Verdict.objects.filter(deployment=alert.deployment, baseline__isnull=False).latest(
        "pk"
    )
    assert verdict.baseline is not None
    Verdict.objects.create(
        project=project,
        deployment=verdict.baseline,
        kind="not_enough_data",
        minute=verdict.minute,
        sentence="",
        evidence={},
        created_at=verdict.created_at,
    )
    html = signed_in.get(
        f"/p/{project.slug}/models/{alert.deployment.model_id}/versions/"
    ).content.decode()
    table = html.split('aria-label="Table of versions"', 1)[1].split("</table>", 1)[0]
    [row] = [
        row for row in table.split("<tr") if f"<bdi>{verdict.baseline.version.name}</bdi>" in row
    ]
    cell = re.sub("<[^>]*>", "", row.split('data-l="Verdict">', 1)[1].split("</td>", 1)[0])
    assert cell == "baseline"
    assert "ROLL BACK" in table
