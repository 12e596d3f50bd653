"""The compare page of a short job: the comparison of runs, their warm-up, and a mark for each run."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.projects.models import Project
from tests.dashboard.regressions.benchmark_commits import Commits, commits
from tests.dashboard.regressions.conftest import time_is

__all__ = ["commits", "time_is"]

pytestmark = pytest.mark.django_db


def test_runs_are_named_with_their_warm_up(
    commits: Commits, signed_in: Client, project: Project
) -> None:
    verdict = commits(12, slower=1.2)
    deployment, baseline = verdict.deployment, verdict.baseline
    assert baseline is not None and baseline.version.name == "commit-11"
    page = signed_in.get(
        f"/p/{project.slug}/models/{deployment.model_id}/compare",
        {"a": baseline.version_id, "b": deployment.version_id},
    ).content.decode()
    assert "runs of earlier versions, same cohort and shapes" in page
    assert "First 1 to 2 min of each run" in page
    assert "new run 1" in page and "commit-10 run 1" in page
