"""The Setup page: key, snippets, first report, and notification channels."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts.reauthentication import require_reauthentication
from dashboard.alerts.channels import list_channel_kinds
from dashboard.alerts.models import Channel
from dashboard.alerts.services import (
    ChannelError,
    channel_create,
    channel_disable,
    channel_enable,
    channel_rotate_secret,
    channel_test,
)
from dashboard.projects.command_key import list_public_keys
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.projects.services import key_create
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_etag, fragment_response, mark_uncached
from dashboard.ui.pages.setup.queries import (
    list_channels_with_last_delivery,
    query_ingest_keys,
    read_arrival,
)
from dashboard.ui.pages.setup.snippets import (
    format_command_environment,
    format_environment,
    snippets,
)

INGEST_KIND = "ing"


@require_safe
@project_page()
def setup(request: ProjectRequest) -> HttpResponse:
    """All steps of a new job, up to its first report."""
    return _page(request)


@require_safe
@project_page()
def setup_arrival(request: ProjectRequest) -> HttpResponse:
    """State of the first report, which the page polls."""
    return fragment_response(request, _arrival(request))


@require_safe
@project_page()
def setup_keys(request: ProjectRequest) -> HttpResponse:
    """The keys with their last use. The page polls them before and after the first use."""
    return fragment_response(request, _keys(request))


@require_safe
@project_page()
def setup_channels(request: ProjectRequest) -> HttpResponse:
    """The channels with the result of their last notification. The page polls them after a test."""
    return fragment_response(request, _channels(request))


@require_POST
@project_page(Role.ADMIN, sure=True)
def key_make(request: ProjectRequest) -> HttpResponse:
    """Creates a key that sends reports and shows it only once, in the response, because it is not
    stored."""
    name, address = request.POST.get("name", "").strip()[:100], request.META.get("REMOTE_ADDR")
    _, text = key_create(
        project=request.project, kind=INGEST_KIND, name=name, actor=request.user, address=address
    )
    return setup_answer(request, made=text)


@require_POST
@project_page(Role.ADMIN, sure=True)
def channel_make(request: ProjectRequest) -> HttpResponse:
    """Adds a channel, or reports the invalid field. The signing secret of a webhook is shown only
    once, in the response."""
    given = {field: request.POST.get(field, "").strip() for field in ("kind", "name", "address")}
    try:
        channel = channel_create(
            project=request.project,
            user=request.user,
            client=request.META.get("REMOTE_ADDR"),
            **given,
        )
    except ChannelError as error:
        return _page(
            request, channel_form=given | {"field": error.field, "error": error.reason}, status=400
        )
    messages.success(request, f"{channel.name} added. Send a test notification to verify it.")
    if not channel.secret:
        return redirect("setup", request.project.slug)
    return setup_answer(request, secret=channel.secret)


@require_POST
@project_page(Role.ADMIN)
def channel_act(request: ProjectRequest, channel_id: int, action: str) -> HttpResponse:
    """Sends a test, enables or disables a channel, or creates a signing secret. A new secret
    requires reauthentication because it is shown."""
    channel = for_project(Channel, request.project).filter(pk=channel_id).first()
    if channel is None or action not in ("test", "enable", "disable", "rotate"):
        raise Http404("Channel not found.")
    if action == "rotate":
        require_reauthentication(request)
        try:
            return setup_answer(
                request,
                secret=channel_rotate_secret(
                    channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR")
                ),
            )
        except ValueError as error:
            messages.error(request, str(error))
    elif action == "test":
        channel_test(channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR"))
        messages.success(
            request, f"Test sent to {channel.name}. The result appears next to the channel."
        )
    elif action == "enable":
        channel_enable(channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR"))
    else:
        channel_disable(channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR"))
    return redirect("setup", request.project.slug)


def setup_answer(request: ProjectRequest, **shown: Any) -> HttpResponse:
    """The page with a secret that is shown only once, in the response."""
    response = _page(request, **shown)
    response["Cache-Control"] = "no-store"
    return response


def _page(
    request: ProjectRequest,
    *,
    made: str = "",
    secret: str = "",
    command_key: str = "",
    channel_form: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    heard, channels, keys = _arrival(request), _channels(request), _keys(request)
    public_key = next(iter(list_public_keys(request.project)), "")
    context: dict[str, Any] = {
        "project": request.project,
        "made": made,
        "secret": secret,
        "command_key": command_key,
        "command_text": format_command_environment(public_key=public_key) if public_key else "",
        "keys": keys,
        "keys_etag": fragment_etag(keys),
        "any_key": "</tr>" in keys,
        "environment_text": format_environment(address=settings.BASE_URL, key=made),
        "snippets": snippets(address=settings.BASE_URL, key=made),
        "arrival": heard,
        "arrival_etag": fragment_etag(heard),
        "channels": channels,
        "channels_etag": fragment_etag(channels),
        "kinds": list_channel_kinds(),
        "any_channel": "</li>" in channels,
        "channel_form": channel_form or {},
    }
    return mark_uncached(render(request, "ui/setup/page.html", context, status=status))


def _arrival(request: ProjectRequest) -> str:
    return render_to_string(
        "ui/setup/arrival.html",
        {"heard": read_arrival(project=request.project), "project": request.project},
    )


def _keys(request: ProjectRequest) -> str:
    return render_to_string(
        "ui/setup/keys.html", {"keys": list(query_ingest_keys(project=request.project))}
    )


def _channels(request: ProjectRequest) -> str:
    may_admin = request.membership.role == Role.ADMIN
    context = {
        "channels": list_channels_with_last_delivery(project=request.project),
        "project": request.project,
        "may_admin": may_admin,
    }
    return render_to_string("ui/setup/channels.html", context)
