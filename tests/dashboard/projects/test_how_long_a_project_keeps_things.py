"""Retention in days is a project setting: bounded, shown, changed by a command, and in the audit
log."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from dashboard.accounts.models import AuditEntry
from dashboard.projects.models import Project
from dashboard.projects.retention import (
    RETENTION_BOUNDS_DAYS,
    Retention,
    longest_retention,
    read_retention,
)

pytestmark = pytest.mark.django_db


def run_command(*words: str) -> str:
    out = StringIO()
    call_command("retention", *words, stdout=out)
    return out.getvalue()


def test_a_project_without_settings_uses_the_defaults(project: Project) -> None:
    assert read_retention(project.settings) == Retention(
        instance_minutes=8, version_minutes=35, version_hours=400, compile_events=35
    )
    assert "instance_minutes     8 days" in run_command()


def test_a_change_is_stored_shown_and_audited(project: Project, other_project: Project) -> None:
    project.settings = {"limits": {"series": 7}}
    project.save()
    text = run_command(
        "--project", project.slug, "--set", "instance_minutes=14", "version_hours=800"
    )
    assert "instance_minutes    14 days  (8 to 90, default 8)" in text
    assert other_project.slug not in text
    project.refresh_from_db()
    assert read_retention(project.settings) == Retention(instance_minutes=14, version_hours=800)
    assert project.settings["limits"] == {"series": 7}
    entry = AuditEntry.objects.get(action="retention.set")
    assert (entry.before["version_hours"], entry.after["version_hours"]) == (400, 800)
    run_command("--project", project.slug, "--set", "instance_minutes=8")
    project.refresh_from_db()
    assert project.settings["retention"] == {"version_hours": 800}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("instance_minutes=7", "instance_minutes is 7, expected 8 to 90 days."),
        ("version_hours=34", "version_hours is 34, expected 35 to 3650 days."),
        (
            "version_minutes=90 version_hours=60",
            "version_hours is 60, expected at least 90 days, the retention of per-version minutes.",
        ),
        (
            "verdicts=10",
            "verdicts is not a retention setting, expected one of instance_minutes, ",
        ),
        (
            "version_hours=-1",
            "version_hours=-1 is not valid, expected a name and a whole number of days",
        ),
        ("version_hours", "version_hours is not valid"),
    ],
)
def test_an_invalid_retention_is_refused_with_a_sentence(
    project: Project, words: str, sentence: str
) -> None:
    with pytest.raises(CommandError) as refused:
        run_command("--project", project.slug, "--set", *words.split())
    assert sentence in str(refused.value)
    project.refresh_from_db()
    assert project.settings == {}


def test_an_unknown_project_is_refused(project: Project) -> None:
    with pytest.raises(CommandError, match="no project 'missing'"):
        run_command("--project", "missing")
    with pytest.raises(CommandError, match="--set requires --project"):
        run_command("--set", "version_hours=500")


@pytest.mark.parametrize(
    "stored", [None, "8", {"instance_minutes": "9"}, {"instance_minutes": 10**9}, {"unknown": 9}]
)
def test_invalid_stored_settings_fall_back_to_the_defaults(stored: object) -> None:
    assert read_retention({"retention": stored}) == Retention()


def test_shared_rows_are_kept_for_the_longest_retention() -> None:
    assert longest_retention(
        [Retention(instance_minutes=30), Retention(version_hours=900)]
    ) == Retention(instance_minutes=30, version_hours=900)
    assert longest_retention([]) == Retention()
    assert all(
        low <= getattr(Retention(), name) <= high
        for name, (low, high) in RETENTION_BOUNDS_DAYS.items()
    )
