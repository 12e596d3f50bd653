"""Test rows: one row of every kind that a URL can name, built the same way for the own project and
for a foreign one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert, Channel, Delivery, MaintenanceWindow, Rule, Switch
from dashboard.common import clock
from dashboard.common.models import Heartbeat
from dashboard.fleet.models import Finding, Instance, ModelVersion
from dashboard.ingest.models import PoisonReport
from dashboard.projects.invitations import invitation_create
from dashboard.projects.models import Key, Project
from dashboard.regressions.models import BaselineChoice
from tests.dashboard.ui import stories

_GROUP = re.compile(r"\(\?P<(\w+)>.*?\)")
_CONVERTER = re.compile(r"<(?:[^:>]+:)?([^>]+)>")
ENVIRONMENT = "production"


def addresses() -> Iterator[tuple[str, str]]:
    """The name and the route of every URL; a URL without a name uses its route as the name."""
    yield from _walk(get_resolver(), "", "")


def _walk(resolver: URLResolver, route: str, space: str) -> Iterator[tuple[str, str]]:
    for one in resolver.url_patterns:
        here = route + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _walk(one, here, f"{one.namespace}:" if one.namespace == "admin" else space)
        elif isinstance(one, URLPattern):
            yield f"{space}{one.name or here}", here


def filled(route: str, ids: dict[str, Any]) -> str:
    """The URL path of a route with these ids filled in."""
    plain = _GROUP.sub(lambda found: f"<{found[1]}>", route).replace("^", "").replace("$", "")
    return "/" + _CONVERTER.sub(lambda found: str(ids[found[1]]), plain)


def looked_at(route: str) -> object:
    """The id of a row of the model that an administration page shows."""
    found = re.match(r"admin/(\w+)/(\w+)/", route)
    if not found or (model := apps.all_models[found[1]].get(found[2])) is None:
        return 1
    return model._default_manager.earliest("pk").pk


def wants(route: str) -> set[str]:
    """The names of the parameters in a route."""
    return set(_CONVERTER.findall(route))


def belongings(project: Project, admin: User, guest: User) -> dict[str, Any]:
    """The ids of one row of each kind in the project, by parameter name."""
    alert = stories.fleet(project, every=400)
    _of_the_server(project)
    invitation, token = invitation_create(project=project, role="viewer", actor=admin)
    return {
        "slug": project.slug,
        "project": project.slug,
        **_of_a_model(alert),
        **_of_messages(alert),
        "invitation_id": invitation.pk,
        "token": token,
        "key_id": Key.objects.filter(project=project).earliest("pk").pk,
        "user_id": guest.pk,
        "provider_id": "sso",
        "document": "dashboard/judge/overview",
        "content_type_id": 1,
        "app_label": "projects",
        "url": "nothing",
    }


def _of_a_model(alert: Alert) -> dict[str, Any]:
    version, now = alert.deployment.version, clock.now()
    mine: dict[str, Any] = {"project": alert.project, "model": version.model}
    seen = {
        "first_version": version,
        "last_version": version,
        "first_seen_at": now,
        "last_seen_at": now,
    }
    finding = Finding.objects.create(
        **mine,
        **seen,
        kind="graph_break",
        fingerprint=f"{alert.project.pk:032d}",
        text="Tensor.item()",
    )
    choice = BaselineChoice.objects.create(
        **mine,
        environment=ENVIRONMENT,
        version=version,
        kind="pin",
        chosen_at=now,
        chosen_by_name="x",
    )
    return {
        "model_id": version.model.pk,
        "version_id": version.pk,
        "a_and_b": list(version.model.versions.order_by("pk").values_list("pk", flat=True))[:2],
        "instance_id": Instance.objects.filter(version=version).earliest("pk").instance_id,
        "finding_id": finding.pk,
        "verdict_id": alert.verdict_id,
        "choice_id": choice.pk,
        "switch_id": _switch(version).pk,
    }


def _switch(version: ModelVersion) -> Switch:
    now = clock.now()
    return Switch.objects.create(
        project=version.project,
        version=version,
        environment=ENVIRONMENT,
        verb="freeze",
        ident=f"s{version.project.pk}",
        note="x",
        asked_at=now,
        asked_by_name="x",
        wanted_until=now + timedelta(hours=1),
        phase_since=now,
    )


def _of_messages(alert: Alert) -> dict[str, Any]:
    project, now = alert.project, clock.now()
    channel = Channel.objects.filter(project=project).earliest("pk")
    window = MaintenanceWindow.objects.create(
        project=project, starts_at=now, ends_at=now + timedelta(hours=1), made_by_name="x"
    )
    return {
        "number": alert.number,
        "channel_id": channel.pk,
        "rule_id": Rule.objects.create(project=project, channel=channel).pk,
        "window_id": window.pk,
        "delivery_id": Delivery.objects.filter(project=project, state="waiting").earliest("pk").pk,
    }


def _of_the_server(project: Project) -> None:
    """Rows that only the administration shows."""
    now = clock.now()
    Heartbeat.objects.update_or_create(name="worker", defaults={"kind": "worker", "seen_at": now})
    sent = {
        "shard": 0,
        "instance_id": "i",
        "seq_first": 1,
        "seq_last": 1,
        "received_at": now,
        "clock_offset": 0,
    }
    PoisonReport.objects.create(
        project=project, **sent, identity=b"{}", report=b"{}", set_aside_at=now, error="x"
    )
