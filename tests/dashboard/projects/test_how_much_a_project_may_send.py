"""The rate limit of a project is shown, changed by a command, bounded, and in the audit log."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from dashboard.accounts.models import AuditEntry
from dashboard.projects.models import Project
from dashboard.projects.rate_limit import DEFAULT_REPORTS_PER_SECOND, read_quota, read_rate

pytestmark = pytest.mark.django_db


def run_command(*words: str) -> str:
    out = StringIO()
    call_command("rate", *words, stdout=out)
    return out.getvalue()


def test_a_change_is_stored_shown_and_audited(project: Project, other_project: Project) -> None:
    assert (
        read_rate(project.settings) == DEFAULT_REPORTS_PER_SECOND
        and "reports_per_second    5,000\n" in run_command()
    )
    text = run_command("--project", project.slug, "--set", "reports_per_second=200")
    assert "reports_per_second      200  (default 5,000)" in text and other_project.slug not in text
    project.refresh_from_db()
    assert read_rate(project.settings) == 200
    entry = AuditEntry.objects.get(action="rate.set")
    assert (entry.before, entry.after) == (
        {"reports_per_second": 5000},
        {"reports_per_second": 200},
    )


def test_the_quota_of_waiting_reports_is_set_independently(project: Project) -> None:
    text = run_command(
        "--project", project.slug, "--set", "reports_waiting=900", "reports_per_second=7"
    )
    assert (
        "reports_waiting         900  (default 200,000)" in text
        and "reports_per_second        7  (default 5,000)" in text
    )
    project.refresh_from_db()
    assert read_quota(project.settings) == {"reports_per_second": 7.0, "reports_waiting": 900}
    assert "reports_waiting         900" in run_command(
        "--project", project.slug, "--set", "reports_per_second=8"
    )


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        (
            "reports_per_second=0",
            "reports_per_second is 0, expected a whole number from 1 to 1,000,000.",
        ),
        (
            "reports_waiting=0",
            "reports_waiting is 0, expected a whole number from 1 to 100,000,000.",
        ),
        ("bytes=5", "bytes is not a quota, expected reports_per_second or reports_waiting."),
        (
            "reports_per_second=0.5",
            "expected a name and a whole number such as reports_per_second=200.",
        ),
    ],
)
def test_an_invalid_rate_is_refused_with_a_sentence(
    project: Project, word: str, sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        run_command("--project", project.slug, "--set", word)


def test_a_change_requires_a_project(project: Project) -> None:
    with pytest.raises(CommandError, match="--set requires --project"):
        run_command("--set", "reports_per_second=5")
    with pytest.raises(CommandError, match="There is no project 'elsewhere'"):
        run_command("--project", "elsewhere")
