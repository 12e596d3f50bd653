"""Settings > Notifications: channels, rules, maintenance windows, and failed notifications."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from dashboard.alerts.channels import list_channel_kinds
from dashboard.alerts.models import Channel, Delivery, MaintenanceWindow, Rule
from dashboard.alerts.services import (
    maintenance_add,
    maintenance_end,
    redeliver_channel_messages,
    redeliver_message,
    rule_add,
    rule_remove,
    time_zone_set,
)
from dashboard.alerts.services.enqueue import get_time_zone
from dashboard.alerts.services.rules import RuleError
from dashboard.common import clock
from dashboard.projects.models import Role
from dashboard.projects.selectors import for_project
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import fragment_etag, mark_uncached
from dashboard.ui.pages.settings.notifications.forms import moment_read, rule_read
from dashboard.ui.pages.settings.notifications.queries import (
    list_channels_with_last_delivery,
    read_rules_data,
)
from dashboard.vocabulary import numbers


@require_safe
@project_page()
def rules(request: ProjectRequest) -> HttpResponse:
    """All rules with their description."""
    return render_notifications(request)


@require_POST
@project_page(Role.ADMIN)
def rule_make(request: ProjectRequest) -> HttpResponse:
    """Adds a rule, or reports the invalid field."""
    channels = {str(channel.pk): channel for channel in for_project(Channel, request.project)}
    try:
        rule = rule_add(
            project=request.project,
            given=rule_read(request.POST, channels),
            user=request.user,
            address=_address(request),
        )
    except RuleError as error:
        return _render_refusal(request, "rule", error)
    messages.success(request, f"Rule for {rule.channel.name} saved.")
    return redirect("rules", request.project.slug)


@require_POST
@project_page(Role.ADMIN)
def rule_end(request: ProjectRequest, rule_id: int) -> HttpResponse:
    """Removes a rule."""
    rule = (
        for_project(Rule, request.project)
        .select_related("channel", "escalate_to", "project")
        .filter(pk=rule_id)
        .first()
    )
    if rule is None:
        raise Http404("Rule not found.")
    rule_remove(rule=rule, user=request.user, address=_address(request))
    messages.success(request, f"Rule for {rule.channel.name} removed.")
    return redirect("rules", request.project.slug)


@require_POST
@project_page(Role.ADMIN)
def rule_zone(request: ProjectRequest) -> HttpResponse:
    """Sets the time zone of quiet hours."""
    try:
        time_zone_set(
            project=request.project,
            name=request.POST.get("time_zone", "").strip(),
            user=request.user,
            address=_address(request),
        )
    except RuleError as error:
        return _render_refusal(request, "zone", error)
    messages.success(request, f"Quiet hours now use the time zone {request.project.time_zone}.")
    return redirect("rules", request.project.slug)


@require_POST
@project_page(Role.OPERATOR)
def maintenance_make(request: ProjectRequest) -> HttpResponse:
    """Adds a maintenance window, or reports the invalid field."""
    zone = get_time_zone(request.project)
    try:
        ends_at = moment_read(request.POST, "ends_at", zone)
        if ends_at is None:
            raise RuleError("ends_at", "enter an end time.")
        maintenance_add(
            project=request.project,
            starts_at=moment_read(request.POST, "starts_at", zone) or clock.now(),
            ends_at=ends_at,
            environment=request.POST.get("environment", "").strip(),
            model=request.POST.get("model", "").strip(),
            note=request.POST.get("note", "").strip(),
            user=request.user,
            address=_address(request),
        )
    except RuleError as error:
        return _render_refusal(request, "maintenance", error)
    messages.success(
        request, "Maintenance scheduled. Notifications are muted; a summary is sent at the end."
    )
    return redirect("rules", request.project.slug)


@require_POST
@project_page(Role.OPERATOR)
def maintenance_stop(request: ProjectRequest, window_id: int) -> HttpResponse:
    """Ends a maintenance window now, or cancels a window that has not begun."""
    windows = for_project(MaintenanceWindow, request.project).select_related("project")
    window = windows.filter(pk=window_id, ends_at__gt=clock.now()).first()
    if window is None:
        raise Http404("Maintenance window not found.")
    maintenance_end(window=window, user=request.user, address=_address(request))
    messages.success(request, "Maintenance ended. Held notifications are sent now.")
    return redirect("rules", request.project.slug)


@require_POST
@project_page(Role.OPERATOR)
def message_redeliver(request: ProjectRequest, delivery_id: int) -> HttpResponse:
    """Redelivers a failed notification."""
    delivery = for_project(Delivery, request.project).filter(pk=delivery_id).first()
    if delivery is None:
        raise Http404("Notification not found.")

    def again() -> str:
        redeliver_message(delivery=delivery, user=request.user, address=_address(request))
        return "Redelivery scheduled with the same message ID."

    return _redeliver(request, again)


@require_POST
@project_page(Role.OPERATOR)
def channel_redeliver(request: ProjectRequest, channel_id: int) -> HttpResponse:
    """Redelivers the failed notifications of a channel."""
    channel = for_project(Channel, request.project).filter(pk=channel_id).first()
    if channel is None:
        raise Http404("Channel not found.")

    def again() -> str:
        count = redeliver_channel_messages(
            channel=channel, user=request.user, address=_address(request)
        )
        return (
            f"Redelivery of {numbers.number(count)} to {channel.name} scheduled with the same "
            "message IDs."
        )

    return _redeliver(request, again)


def _redeliver(request: ProjectRequest, again: Callable[[], str]) -> HttpResponse:
    """Redelivers and shows the result or the reason of a refusal."""
    try:
        messages.success(request, again())
    except ValueError as error:
        messages.error(request, str(error))
    return redirect("rules", request.project.slug)


def _render_refusal(request: ProjectRequest, form: str, error: RuleError) -> HttpResponse:
    label = error.field.replace("_", " ").capitalize()
    messages.error(request, f"Not saved. {label}: {error.reason}")
    return render_notifications(
        request, form=form, field=error.field, text=error.reason, status=400
    )


def render_notifications(
    request: ProjectRequest,
    *,
    form: str = "",
    field: str = "",
    text: str = "",
    secret: str = "",
    channel_form: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, with the error of a form or with a secret that is shown only once."""
    listed = list_channels_with_last_delivery(project=request.project)
    channels = render_channels(request, listed)
    context = {
        "project": request.project,
        "page": read_rules_data(
            project=request.project, channels=[channel for channel, _ in listed]
        ),
        "channels": channels,
        "channels_etag": fragment_etag(channels),
        "any_channel": "</li>" in channels,
        "kinds": list_channel_kinds(),
        "channel_form": channel_form or {},
        "secret": secret,
        "form": form,
        "field": field,
        "text": text[:1].upper() + text[1:],
        "given": request.POST,
        "given_severities": request.POST.getlist("severities") if form == "rule" else ["roll_back"],
    }
    return mark_uncached(
        render(request, "ui/settings/notifications/page.html", context, status=status)
    )


def render_channels(
    request: ProjectRequest, listed: Sequence[tuple[Channel, Delivery | None]]
) -> str:
    """The list of channels, each with the result of its last notification."""
    context = {
        "channels": listed,
        "project": request.project,
        "may_admin": request.membership.role == Role.ADMIN,
    }
    return render_to_string("ui/settings/notifications/channels.html", context)


def _address(request: ProjectRequest) -> str | None:
    return request.META.get("REMOTE_ADDR")
