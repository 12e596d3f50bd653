"""Settings > Members: members of the project, their roles, and invitations."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.common.mail_address import mail_address_check
from dashboard.projects.invitations import (
    InvitationError,
    invitation_create,
    invitation_revoke,
    list_open_invitations,
)
from dashboard.projects.members import MemberError, member_remove, member_role_set
from dashboard.projects.models import Member, Role
from dashboard.projects.selectors import for_project
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.settings.members.invitation_mail import send_invitation_mail
from dashboard.ui.pages.settings.members.queries import read_members_data


@require_safe
@project_page()
def members(request: ProjectRequest) -> HttpResponse:
    """All members of the project."""
    return _render(request)


@require_POST
@project_page(Role.ADMIN, sure=True)
def member_invite(request: ProjectRequest) -> HttpResponse:
    """Creates an invitation and shows its link only once, in the response. Emails the link if an
    address is given."""
    given = {field: request.POST.get(field, "").strip() for field in ("role", "note", "email")}
    try:
        if given["email"]:
            _mail_check(given["email"])
        made, text = invitation_create(
            project=request.project,
            role=given["role"],
            note=given["note"] or given["email"],
            actor=request.user,
            address=_address(request),
        )
    except InvitationError as error:
        return _render(
            request, form=given | {"field": error.field, "error": error.sentence}, status=400
        )
    link = settings.ORIGIN + reverse("invitation", args=[text])
    if given["email"]:
        sent = send_invitation_mail(invitation=made, link=link, to=given["email"])
        (messages.success if sent else messages.error)(
            request,
            f"Invitation sent to {given['email']}."
            if sent
            else "The mail server rejected the email. Send the link yourself.",
        )
    response = _render(request, made=link, made_role=made.get_role_display())
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@project_page(Role.ADMIN)
def member_uninvite(request: ProjectRequest, invitation_id: int) -> HttpResponse:
    """Revokes an invitation."""
    invitation = list_open_invitations(request.project).filter(pk=invitation_id).first()
    if invitation is None:
        raise Http404("Invitation not found.")
    try:
        invitation_revoke(invitation=invitation, actor=request.user, address=_address(request))
    except InvitationError as error:
        messages.error(request, error.sentence)
    else:
        messages.success(request, "Invitation revoked. Its link no longer works.")
    return redirect("members", request.project.slug)


@require_POST
@project_page(Role.ADMIN, sure=True)
def member_role(request: ProjectRequest, user_id: int) -> HttpResponse:
    """Changes a role."""
    _member_or_404(request, user_id)
    try:
        member = member_role_set(
            project=request.project,
            user_id=user_id,
            role=request.POST.get("role", ""),
            actor=request.user,
            address=_address(request),
        )
    except MemberError as error:
        return _render_refusal(request, error)
    messages.success(
        request, f"{member.user.get_username()} is now {member.get_role_display().lower()}."
    )
    return redirect("members", request.project.slug)


@require_POST
@project_page(Role.ADMIN, sure=True)
def member_end(request: ProjectRequest, user_id: int) -> HttpResponse:
    """Removes a member from the project."""
    _member_or_404(request, user_id)
    try:
        member = member_remove(
            project=request.project, user_id=user_id, actor=request.user, address=_address(request)
        )
    except MemberError as error:
        return _render_refusal(request, error)
    messages.success(
        request,
        f"{member.user.get_username()} removed. Keys that this member created keep working; "
        "see Keys.",
    )
    return (
        redirect("home")
        if user_id == request.user.pk
        else redirect("members", request.project.slug)
    )


@require_POST
@project_page()
def member_leave(request: ProjectRequest) -> HttpResponse:
    """The person leaves the project."""
    try:
        member_remove(
            project=request.project,
            user_id=request.user.pk,
            actor=request.user,
            address=_address(request),
        )
    except MemberError as error:
        return _render_refusal(request, error)
    messages.success(request, f"You have left {request.project.name}.")
    return redirect("home")


def _member_or_404(request: ProjectRequest, user_id: int) -> None:
    if not for_project(Member, request.project).filter(user_id=user_id).exists():
        raise Http404("Member not found.")


def _mail_check(text: str) -> None:
    if not settings.MAIL_READY:
        raise InvitationError(
            "email", "this server cannot send email. Leave it empty and send the link yourself."
        )
    try:
        mail_address_check(text)
    except ValueError as error:
        raise InvitationError("email", f"{error}") from error


def _render_refusal(request: ProjectRequest, error: MemberError) -> HttpResponse:
    messages.error(request, f"Nothing was changed: {error.reason}")
    return _render(request, status=400)


def _render(
    request: ProjectRequest,
    *,
    made: str = "",
    made_role: str = "",
    form: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "project": request.project,
        "page": read_members_data(project=request.project, me=request.user),
        "made": made,
        "made_role": made_role,
        "form": form or {},
        "mail_ready": settings.MAIL_READY,
    }
    return mark_uncached(render(request, "ui/settings/members.html", context, status=status))


def _address(request: ProjectRequest) -> str | None:
    return request.META.get("REMOTE_ADDR")
