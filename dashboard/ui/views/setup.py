"""The Setup page: a key, a snippet, the first report, and where messages go."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.channels import CHANNELS
from dashboard.alerts.models import Channel
from dashboard.alerts.services import channel_create, channel_disable, channel_enable, channel_test
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project, member_role
from dashboard.projects.services import key_create, key_revoke
from dashboard.ui.door import ProjectRequest, project_page
from dashboard.ui.fragments import fragment_etag, fragment_response, uncached
from dashboard.ui.selectors.setup import arrival, channels_with_last, ingest_keys
from dashboard.ui.snippets import environment, snippets


@require_safe
@project_page()
def setup(request: ProjectRequest) -> HttpResponse:
    """Everything a new job needs, down to its first report."""
    return _page(request)


@require_safe
@project_page()
def setup_arrival(request: ProjectRequest) -> HttpResponse:
    """Whether a report has come; the page asks again and again."""
    return fragment_response(request, _arrival(request))


@require_safe
@project_page()
def setup_channels(request: ProjectRequest) -> HttpResponse:
    """The channels with what their last message met; the page asks after a test."""
    return fragment_response(request, _channels(request))


@require_POST
@project_page(Role.ADMIN)
def key_make(request: ProjectRequest) -> HttpResponse:
    """Makes a key and shows it this once, in the answer itself: it is stored nowhere."""
    name = request.POST.get("name", "").strip()[:100]
    _, text = key_create(project=request.project, name=name, actor=request.user)
    response = _page(request, made=text)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@project_page(Role.ADMIN)
def key_end(request: ProjectRequest, key_id: int) -> HttpResponse:
    """Revokes a key."""
    key = ingest_keys(project=request.project).filter(pk=key_id).first()
    if key is None:
        raise Http404("There is no such key.")
    key_revoke(key=key, actor=request.user)
    messages.success(request, "The key is revoked. Jobs that still use it are refused from now on.")
    return redirect("setup", request.project.slug)


@require_POST
@project_page(Role.ADMIN)
def channel_make(request: ProjectRequest) -> HttpResponse:
    """Adds a channel, or says which field is wrong; what signs a webhook is shown this once, in the answer itself."""
    given = {field: request.POST.get(field, "").strip() for field in ("kind", "name", "address")}
    try:
        channel = channel_create(project=request.project, user=request.user, client=request.META.get("REMOTE_ADDR"), **given)
    except ValueError as error:
        field, _, text = str(error).partition(": ")
        return _page(request, channel_form=given | {"field": field, "error": text or str(error)}, status=400)
    messages.success(request, f"{channel.name} is added. Send a test to see whether it answers.")
    if not channel.secret:
        return redirect("setup", request.project.slug)
    response = _page(request, secret=channel.secret)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@project_page(Role.ADMIN)
def channel_act(request: ProjectRequest, channel_id: int, action: str) -> HttpResponse:
    """Send test, switch on, switch off."""
    channel = for_project(Channel, request.project).filter(pk=channel_id).first()
    if channel is None or action not in ("test", "enable", "disable"):
        raise Http404("There is no such channel.")
    if action == "test":
        channel_test(channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR"))
        messages.success(request, f"A test is on its way to {channel.name}; its answer shows beside the channel.")
    elif action == "enable":
        channel_enable(channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR"))
    else:
        channel_disable(channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR"))
    return redirect("setup", request.project.slug)


def _page(
    request: ProjectRequest, *, made: str = "", secret: str = "", channel_form: dict[str, str] | None = None, status: int = 200
) -> HttpResponse:
    heard, channels = _arrival(request), _channels(request)
    context: dict[str, Any] = {
        "project": request.project,
        "made": made,
        "secret": secret,
        "keys": list(ingest_keys(project=request.project)),
        "environment_text": environment(address=settings.BASE_URL, key=made),
        "snippets": snippets(address=settings.BASE_URL),
        "arrival": heard,
        "arrival_etag": fragment_etag(heard),
        "channels": channels,
        "channels_etag": fragment_etag(channels),
        "kinds": [
            (kind, {"slack": "Slack", "webhook": "Webhook", "cloudevents": "Webhook, CloudEvents", "email": "E-mail"}.get(kind, kind))
            for kind in CHANNELS
        ],
        "any_channel": "</li>" in channels,
        "channel_form": channel_form or {},
    }
    return uncached(render(request, "ui/setup/page.html", context, status=status))


def _arrival(request: ProjectRequest) -> str:
    return render_to_string("ui/setup/arrival.html", {"heard": arrival(project=request.project), "project": request.project})


def _channels(request: ProjectRequest) -> str:
    role = member_role(request.user, request.project)
    context = {"channels": channels_with_last(project=request.project), "project": request.project, "may_admin": role == Role.ADMIN}
    return render_to_string("ui/setup/channels.html", context)
