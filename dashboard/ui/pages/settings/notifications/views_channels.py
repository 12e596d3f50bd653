"""Channels of Settings > Notifications: their list, new channels, tests and signing secrets."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts.reauthentication import require_reauthentication
from dashboard.alerts.models import Channel
from dashboard.alerts.services import (
    ChannelError,
    channel_create,
    channel_disable,
    channel_enable,
    channel_rotate_secret,
    channel_test,
)
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_response
from dashboard.ui.pages.settings.notifications.queries import list_channels_with_last_delivery
from dashboard.ui.pages.settings.notifications.views import render_channels, render_notifications


@require_safe
@project_page()
def channels(request: ProjectRequest) -> HttpResponse:
    """The channels with the result of their last notification. The page polls them after a test."""
    return fragment_response(
        request, render_channels(request, list_channels_with_last_delivery(project=request.project))
    )


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
        form = given | {"field": error.field, "error": error.reason}
        return render_notifications(request, channel_form=form, status=400)
    messages.success(request, f"{channel.name} added. Send a test notification to verify it.")
    if not channel.secret:
        return redirect("rules", request.project.slug)
    return _show_secret(request, channel.secret)


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
            secret = channel_rotate_secret(
                channel=channel, user=request.user, client=request.META.get("REMOTE_ADDR")
            )
            return _show_secret(request, secret)
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
    return redirect("rules", request.project.slug)


def _show_secret(request: ProjectRequest, secret: str) -> HttpResponse:
    """The page with a signing secret that is shown only once, in the response."""
    response = render_notifications(request, secret=secret)
    response["Cache-Control"] = "no-store"
    return response
