"""New projects, and joining a project with an invitation."""

from __future__ import annotations

from typing import Any

from allauth.decorators import rate_limit
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.accounts.models import User
from dashboard.accounts.services import user_build, user_store
from dashboard.accounts.sign_in import sign_in_by_password
from dashboard.common.write_lock import write_transaction
from dashboard.projects.invitations import InvitationError, find_invitation, invitation_accept
from dashboard.projects.models import Invitation, Member, Role
from dashboard.projects.selectors import may_create_projects, role_includes
from dashboard.projects.services import ProjectError, project_create_from_name


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def project_new(request: HttpRequest) -> HttpResponse:
    """Creates a project with its creator as admin."""
    assert isinstance(request.user, User)
    if not may_create_projects(request.user):
        raise PermissionDenied("Only project admins and staff can create projects.")
    name, error = request.POST.get("name", ""), ""
    if request.method == "POST":
        try:
            project = project_create_from_name(
                name=name, actor=request.user, address=request.META.get("REMOTE_ADDR")
            )
        except ProjectError as refused:
            error = str(refused)
        else:
            messages.success(request, f"{project.name} created. Send the first report to see data.")
            return redirect("setup", project.slug)
    return render(
        request,
        "ui/account/project_new.html",
        {"name": name, "error": error},
        status=400 if error else 200,
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limit(action="invitation", limit_get=True)  # type: ignore[untyped-decorator]  # allauth has no types
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """The invitation. A person without a session creates an account here, or signs in first."""
    found = find_invitation(token)
    if found is None:
        return render(request, "ui/account/invitation_gone.html", status=404)
    context = {"invitation": found, "token": token} | _read_membership(request, found)
    if request.method != "POST":
        return render(request, "ui/account/invitation.html", context)
    address = request.META.get("REMOTE_ADDR")
    try:
        user = request.user if isinstance(request.user, User) else _build_user(request)
        with write_transaction():  # An expired invitation creates no account.
            if user.pk is None:
                user_store(user=user, actor_name="invitation", address=address)
            invitation_accept(invitation=found, user=user, address=address)
    except (ValidationError, InvitationError) as error:
        given = {"username": request.POST.get("username", ""), "errors": _errors(error)}
        return render(request, "ui/account/invitation.html", context | given, status=400)
    return _enter_project(request, found, user)


def _read_membership(request: HttpRequest, found: Invitation) -> dict[str, Any]:
    """The current membership of the viewer, if any, and whether the invitation adds permissions."""
    member = (
        Member.objects.filter(project=found.project, user=request.user).first()
        if isinstance(request.user, User)
        else None
    )
    return {
        "member": member,
        "member_gains": member and not role_includes(Role(member.role), Role(found.role)),
    }


def _build_user(request: HttpRequest) -> User:
    """The unsaved user of the form; raises ValidationError by field."""
    return user_build(
        username=request.POST.get("username", "").strip(), password=request.POST.get("password", "")
    )


def _errors(error: ValidationError | InvitationError) -> dict[str, list[str]]:
    if isinstance(error, InvitationError):
        return {"all": [error.sentence]}
    if not hasattr(error, "error_dict"):
        return {"password": error.messages}
    return {
        field if field == "username" else "all": texts
        for field, texts in error.message_dict.items()
    }


def _enter_project(request: HttpRequest, found: Invitation, user: User) -> HttpResponse:
    if not request.user.is_authenticated:
        sign_in_by_password(request, user)
    messages.success(request, f"Welcome to {found.project.name}.")
    return redirect("fleet", found.project.slug)
