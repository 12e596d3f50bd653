"""The dashboard signs commands with a key pair: the private half is not stored, and jobs receive
the public half."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.wire.command import (
    Command,
    CommandRefused,
    command_open,
    command_open_public,
    key_project,
)
from compilewatch.wire.ed25519 import PublicKey
from django.conf import LazySettings

from dashboard.accounts.models import AuditEntry
from dashboard.common import clock
from dashboard.ingest.commands import (
    CommandTarget,
    clear_command_cache,
    command_issue,
    list_live_commands,
)
from dashboard.ingest.models import Command as Row
from dashboard.projects.command_key import command_key_create, derive_command_key, list_public_keys
from dashboard.projects.models import Project

PLACE = CommandTarget("ranker", "1", "production")
Issue = Callable[[Project], dict[str, Any]]


@pytest.fixture
def issue() -> Iterator[Issue]:
    """Issues a command and returns it as an instance receives it."""

    def issued(project: Project) -> dict[str, Any]:
        key, now = derive_command_key(project), clock.unix()

        def order(counter: int) -> Command:
            return Command(
                f"a1.{counter}",
                key_project(key),
                "eager",
                counter,
                *PLACE,
                now,
                now + 60,
                share=1.0,
            )

        command_issue(project=project, key=key, by="ada", order=order)
        clear_command_cache()
        [given] = list_live_commands(project_id=project.pk, place=PLACE, instance="i", job="")
        return given

    yield issued
    clear_command_cache()


def opened(given: dict[str, Any], public_key: str) -> Command:
    """The command as an agent with this public key verifies it."""
    return command_open_public(given, public_key, PublicKey(bytes.fromhex(public_key)).verify)


@pytest.mark.django_db
def test_an_agent_verifies_a_command_of_the_dashboard(project: Project, issue: Issue) -> None:
    command_key_create(project=project, actor_name="tests")
    given = issue(project)
    [public] = list_public_keys(project)
    assert opened(given, public).counter == 1 and list(given["ed25519"]) == [public]


@pytest.mark.django_db
def test_the_same_message_has_the_mac_for_agents_of_the_previous_release(
    project: Project, issue: Issue
) -> None:
    key = command_key_create(project=project, actor_name="tests")
    given = issue(project)
    [public] = list_public_keys(project)
    assert command_open(given, key) == opened(given, public)


@pytest.mark.django_db
def test_the_previous_public_key_verifies_until_the_key_is_replaced_twice(
    project: Project, issue: Issue
) -> None:
    command_key_create(project=project, actor_name="tests")
    [first] = list_public_keys(project)
    command_key_create(project=project, actor_name="tests")
    second, before = list_public_keys(project)
    assert before == first != second
    given = issue(project)
    assert opened(given, first) == opened(given, second)
    command_key_create(project=project, actor_name="tests")
    assert first not in list_public_keys(project) and list_public_keys(project)[1] == second
    with pytest.raises(CommandRefused, match="not_signed"):
        opened(issue(project), first)


@pytest.mark.django_db
def test_another_project_signs_with_another_key(
    project: Project, other_project: Project, issue: Issue
) -> None:
    for one in (project, other_project):
        command_key_create(project=one, actor_name="tests")
    [ours], [theirs] = list_public_keys(project), list_public_keys(other_project)
    given = issue(other_project)
    with pytest.raises(CommandRefused, match="not_signed"):
        opened(given, ours)
    given["ed25519"] = {ours: given["ed25519"][theirs]}
    with pytest.raises(CommandRefused, match="forged"):
        opened(given, ours)


@pytest.mark.django_db
def test_the_nonce_of_another_project_derives_another_key(
    project: Project, other_project: Project
) -> None:
    command_key_create(project=project, actor_name="tests")
    other_project.settings = project.settings
    assert list_public_keys(other_project) != list_public_keys(project)


@pytest.mark.django_db
def test_the_private_key_needs_both_the_pepper_and_the_database(
    project: Project, settings: LazySettings
) -> None:
    text = command_key_create(project=project, actor_name="tests")
    [public] = list_public_keys(project)
    stored = json.dumps(project.settings) + str(
        list(AuditEntry.objects.values_list("before", "after", "subject"))
    )
    assert text not in stored and public not in json.dumps(project.settings)
    settings.KEY_PEPPER = "another pepper of thirty-two characters"
    assert list_public_keys(project) != [public]


@pytest.mark.django_db
def test_changes_of_the_public_key_are_in_the_audit_log(project: Project) -> None:
    command_key_create(project=project, actor_name="tests")
    command_key_create(project=project, actor_name="tests")
    second, first = list_public_keys(project)
    entry = AuditEntry.objects.filter(action="command_key.make").order_by("-pk")[0]
    assert (entry.before["public_key"], entry.after["public_key"]) == (first, second)


@pytest.mark.django_db
def test_a_project_with_a_key_of_the_previous_release_has_a_public_key(
    project: Project,
) -> None:
    project.settings = {"command_key": {"nonce": "0" * 32, "made_at": "2026-01-01T00:00:00+00:00"}}
    [public] = list_public_keys(project)
    assert PublicKey(bytes.fromhex(public)).encoded.hex() == public


@pytest.mark.django_db
def test_a_project_without_a_key_has_no_public_key(project: Project) -> None:
    assert list_public_keys(project) == []


@pytest.mark.django_db
def test_a_row_that_was_written_without_signatures_is_sent_without_them(
    project: Project, issue: Issue
) -> None:
    """The row as the previous release, or a person with database access, writes it."""
    command_key_create(project=project, actor_name="tests")
    issue(project)
    Row.objects.update(signatures=None)
    clear_command_cache()
    [given] = list_live_commands(project_id=project.pk, place=PLACE, instance="i", job="")
    assert set(given) == {"signed"}
