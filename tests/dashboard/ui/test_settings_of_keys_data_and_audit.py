"""Settings > Keys, Data and Audit: keys are shown once, retention has bounds, and every change is
in the audit log."""

import csv
import re

import pytest
from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.services import audit_write
from dashboard.projects.key_auth import key_check
from dashboard.projects.models import Key, Project
from dashboard.projects.retention import read_retention
from dashboard.ui.pages.settings.audit.queries import format_audit_value

SETTINGS = "/p/ranking/settings/"


def create_key(client: Client, kind: str, **given: str) -> str:
    answer = client.post(SETTINGS + "keys/add/", {"kind": kind, "expires": "", **given})
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    found = re.search(r'<code id="key">(cw_\w+)</code>', answer.content.decode())
    assert found
    return found[1]


def test_a_key_of_each_kind_is_shown_once_and_revoked_immediately(
    signed_in: Client, project: Project
) -> None:
    texts = {
        kind: create_key(signed_in, kind, name=f"for {kind}", expires="90")
        for kind in ("ing", "api", "dep")
    }
    listed = signed_in.get(SETTINGS + "keys/").content.decode()
    for kind, text in texts.items():
        known = key_check(text)
        assert known and known.kind == kind and known.expires_at
        assert text not in listed and f"for {kind}" in listed
    key = Key.objects.get(kind="api")
    signed_in.post(f"{SETTINGS}keys/{key.pk}/revoke/")
    assert "Revoked in the last 30 days" in signed_in.get(SETTINGS + "keys/").content.decode()
    rows = (
        AuditEntry.objects.filter(action__startswith="key.")
        .order_by("pk")
        .values_list("action", "address")
    )
    assert list(rows) == [*[("key.create", "127.0.0.1")] * 3, ("key.revoke", "127.0.0.1")]
    assert signed_in.post(f"{SETTINGS}keys/{key.pk}/revoke/").status_code == 404


def test_a_key_without_a_valid_kind_is_not_created(signed_in: Client, project: Project) -> None:
    for given in ({"kind": "root"}, {"kind": "ing", "expires": "1"}, {}):
        assert signed_in.post(SETTINGS + "keys/add/", given).status_code == 400
    assert not Key.objects.exists()


def test_retention_days_are_limited_to_their_bounds(signed_in: Client, project: Project) -> None:
    fields = {
        "instance_minutes": "8",
        "version_minutes": "35",
        "version_hours": "800",
        "compile_events": "",
    }
    signed_in.post(SETTINGS + "data/save/", fields)
    project.refresh_from_db()
    assert read_retention(project.settings).version_hours == 800
    assert project.settings["retention"] == {"version_hours": 800}
    for name, value in (
        ("version_hours", "3651"),
        ("version_hours", "36e1"),
        ("compile_events", "7"),
        ("version_minutes", "-1"),
    ):
        answer = signed_in.post(SETTINGS + "data/save/", {**fields, name: value})
        html = answer.content.decode()
        assert (
            answer.status_code == 400 and f'id="d-{name}-e"' in html and f'value="{value}"' in html
        )
    odd = signed_in.post(
        SETTINGS + "data/save/", {**fields, "version_hours": "36", "version_minutes": "90"}
    )
    assert odd.status_code == 400 and 'id="d-version_hours-e"' in odd.content.decode()
    assert (
        "Hours of versions: expected at least 90 days, the retention of per-version minutes, "
        "not 36." in odd.content.decode()
    )
    project.refresh_from_db()
    assert project.settings["retention"] == {"version_hours": 800}
    [row] = AuditEntry.objects.filter(action="retention.set")
    assert (row.before["version_hours"], row.after["version_hours"], row.actor_name) == (
        400,
        800,
        "ada",
    )


@pytest.mark.parametrize(
    ("given", "said"), [("abc", "not “abc”."), ("7", "not 7."), ("91", "not 91.")]
)
def test_an_invalid_number_of_days_is_reported_with_the_label_of_the_page(
    signed_in: Client, project: Project, given: str, said: str
) -> None:
    page = signed_in.post(SETTINGS + "data/save/", {"instance_minutes": given}).content.decode()
    assert page.count(f"Minutes of instances: expected 8 to 90 days, {said}") == 2, (
        "above the form and at the field"
    )
    assert "instance_minutes is" not in page


def test_the_audit_log_is_paged_filtered_and_exported(
    signed_in: Client, project: Project, other_project: Project, user: User
) -> None:
    for number in range(60):
        audit_write(
            action="channel.create",
            subject=f"channel {number}",
            project_id=project.pk,
            actor=user,
            after={"name": "=1+1"},
        )
    audit_write(
        action="key.create", subject="=cmd|' /C calc'!A0", project_id=project.pk, actor_name="setup"
    )
    audit_write(
        action="key.create", subject="foreign", project_id=other_project.pk, actor_name="setup"
    )
    first = signed_in.get(SETTINGS + "audit/").content.decode()
    assert "channel 59" in first and "channel 5<" not in first and "foreign" not in first
    assert "channel 5<" in signed_in.get(SETTINGS + "audit/?page=2").content.decode()
    only = signed_in.get(SETTINGS + "audit/?action=key&who=setup").content.decode()
    assert "1 change<" in only and "channel 59" not in only
    assert (
        "No entries match this filter"
        in signed_in.get(SETTINGS + "audit/?about=nothing+like+this").content.decode()
    )
    lines = list(
        csv.reader(signed_in.get(SETTINGS + "audit.csv?action=key").content.decode().splitlines())
    )
    assert lines[0][:4] == ["at", "who", "action", "subject"]
    assert [line[3] for line in lines[1:]] == ["'=cmd|' /C calc'!A0"]
    assert signed_in.get(SETTINGS + "audit/?page=99999999999999999999").status_code == 200


def test_every_settings_page_links_to_the_others(signed_in: Client, project: Project) -> None:
    parts = ("judging", "messages", "members", "keys", "data", "audit")
    for part in parts:
        html = signed_in.get(f"{SETTINGS}{part}/").content.decode()
        assert f'href="{SETTINGS}{part}/" aria-current="page"' in html
        assert all(f'href="{SETTINGS}{other}/"' in html for other in parts)


def test_audit_values_are_written_in_words_without_empty_values() -> None:
    said = format_audit_value(
        {
            "name": "rocket",
            "kind": "ing",
            "revoked_at": None,
            "rank": 0,
            "notified": False,
            "models": ["a", "b"],
            "note": "",
        }
    )
    assert said == "name: rocket, kind: sends reports, rank: 0, notified: no, models: a b"
    assert format_audit_value(None) == format_audit_value({"until": None}) == ""
