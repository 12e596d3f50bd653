"""The kill switch page: the permissions that a job must grant first, the form, the requester, the
instances that applied the command, and all refusals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.kill_switch.models import Switch
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.models import CommandReceipt, Instance
from dashboard.projects.command_key import command_key_create
from dashboard.projects.models import Role


def address(alert: Alert, part: str = "") -> str:
    return f"/p/ranking/models/{alert.deployment.model_id}/switch/{part}"


def allow(alert: Alert) -> Instance:
    """An instance of the version that reports now and allows both commands."""
    one = (
        Instance.objects.filter(version=alert.deployment.version, environment="production")
        .order_by("pk")
        .first()
    )
    assert one is not None
    one.capabilities, one.last_seen_at = {"switch": ["yes", "freeze, eager"]}, clock.now()
    one.save()
    return one


def receipt(one: Instance, switch: Switch, state: str, **more: object) -> None:
    known = {"verb": "freeze", "counter": 1, "why": "", "detail": "", "callables": 2, "refused": 0}
    CommandReceipt.objects.create(
        project_id=one.project_id,
        instance=one,
        at=clock.now(),
        state=state,
        command=switch.command,
        **{**known, **more},
    )


def test_the_page_lists_missing_requirements_before_the_switch_can_be_used(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    client = as_role(Role.OPERATOR)
    assert "This project has no command key." in client.get(address(alert)).content.decode()
    command_key_create(project=alert.project, actor_name="tests")
    missing = client.get(address(alert)).content.decode()
    assert (
        "COMPILEWATCH_ALLOW_REMOTE=freeze,eager" in missing
        and "COMPILEWATCH_COMMAND_PUBLIC_KEY" in missing
    )
    allow(alert)
    assert (
        "Start with 1 instance"
        in client.get(address(alert), {"env": "production"}).content.decode()
    )
    assert (
        "The kill switch requires the Operator role."
        in as_role(Role.VIEWER).get(address(alert), {"env": "production"}).content.decode()
    )


def test_the_page_counts_instances_that_verify_commands_by_the_symmetric_key(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    command_key_create(project=alert.project, actor_name="tests")
    one, client = allow(alert), as_role(Role.VIEWER)

    def page(**capabilities: list[str]) -> str:
        Instance.objects.filter(pk=one.pk).update(
            capabilities={"switch": ["yes", "freeze"], **capabilities}
        )
        return client.get(address(alert), {"env": "production"}).content.decode()

    said = "<b>1 verifies commands with the symmetric key.</b>"
    assert said in page() and said in page(command_signatures=["partly", "HMAC-SHA256"])
    assert "symmetric" not in page(command_signatures=["yes", "Ed25519"])
    assert "symmetric" not in page(switch=["no", "not allowed by this job"])


def test_an_operator_sends_a_command_and_all_members_see_the_result(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    command_key_create(project=alert.project, actor_name="tests")
    one, client = allow(alert), as_role(Role.OPERATOR)
    given = {
        "environment": "production",
        "version": alert.deployment.version.name,
        "verb": "freeze",
        "minutes": "15",
    }
    assert (
        "Note: enter a reason"
        in client.post(address(alert, "begin/"), given, follow=True).content.decode()
    )
    page = client.post(
        address(alert, "begin/"), {**given, "note": "<b>recompiles</b>"}, follow=True
    ).content.decode()
    switch = Switch.objects.get()
    assert (
        "starts first" in page
        and "&lt;b&gt;recompiles&lt;/b&gt;" in page
        and "operator-person" in page
    )
    receipt(one, switch, "applied")
    receipt(one, switch, "refused", why="forged", refused=3)
    Instance.objects.filter(pk=one.pk).update(last_seen_at=clock.now() - timedelta(seconds=5))
    seen = as_role(Role.VIEWER).get(address(alert), {"env": "production"}).content.decode()
    assert "forged" in seen and "3 commands refused" in seen and "Revert now" not in seen
    back = client.post(address(alert, f"{switch.pk}/end/"), follow=True).content.decode()
    assert "cancelled by operator-person" in back and "No override active" in back
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"command_key.make", "switch.begin", "switch.command", "switch.end"} <= actions


def test_the_fleet_and_model_pages_show_the_start_and_the_author_of_the_switch(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    deployment, now = alert.deployment, clock.now()
    fields = {
        "project": alert.project,
        "version": deployment.version,
        "environment": "production",
        "note": "<i>too slow</i>",
    }
    times = {"asked_at": now, "phase_since": now, "wanted_until": now + timedelta(minutes=30)}
    switch = Switch.objects.create(
        verb="eager", ident="a1", asked_by_name="grace", **fields, **times
    )
    client, pages = (
        as_role(Role.VIEWER),
        ("/p/ranking/", f"/p/ranking/models/{deployment.model_id}/?env=production"),
    )
    for phase, share, said in (
        ("asking", 0.0, "is requested to run eager</b>"),
        ("going", 0.25, "is instructed to run eager on some of its instances</b>"),
        ("watching", 0.25, "runs eager on some of its instances</b>"),
        ("watching", 1.0, "runs eager</b>"),
    ):
        Switch.objects.filter(pk=switch.pk).update(held_share=share, phase=phase)
        for page in pages:
            html = client.get(page).content.decode()
            assert (
                said in html
                and "by <bdi>grace</bdi>" in html
                and "“<bdi>&lt;i&gt;too slow&lt;/i&gt;</bdi>”. " in html
            )
            assert ("More instances follow in stages" in html) == (share == 0.25)
    assert "grace" not in client.get("/p/ranking/?env=staging").content.decode()
    Switch.objects.filter(pk=switch.pk).update(ended_at=now)
    assert not any("grace" in client.get(page).content.decode() for page in pages)
