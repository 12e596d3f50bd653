"""Invitations: links that add their first visitor to a project, valid for a week. Only a keyed hash
is stored."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common import clock
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.projects.key_format import key_digest
from dashboard.projects.models import Invitation, Member, Project, Role
from dashboard.projects.selectors import for_project, role_includes

INVITATION_LIFETIME = timedelta(days=7)
MAX_OPEN_INVITATIONS = 100


class InvitationError(FieldError):
    """An invitation that cannot be created or accepted."""


def invitation_create(
    *, project: Project, role: str, note: str = "", actor: User, address: str | None = None
) -> tuple[Invitation, str]:
    """Creates an invitation. Returns the invitation and the secret of its link, which is not stored
    and cannot be shown again. Raises InvitationError."""
    if role not in Role.values:
        raise InvitationError("role", f"expected one of {', '.join(Role.values)}.")
    if list_open_invitations(project).count() >= MAX_OPEN_INVITATIONS:
        raise InvitationError(
            "role", f"{MAX_OPEN_INVITATIONS} invitations are open; revoke some first."
        )
    text, now = secrets.token_urlsafe(32), clock.now()
    made = Invitation(
        project=project,
        role=role,
        note=note[:200],
        made_by=actor,
        created_at=now,
        expires_at=now + INVITATION_LIFETIME,
    )
    made.digest = key_digest(text, settings.KEY_PEPPER)
    with write_transaction():
        made.save()
        _audit("invitation.create", made, actor, address, after={"role": role, "note": made.note})
    return made, text


def find_invitation(text: str) -> Invitation | None:
    """The open invitation behind a link. None if its creator is no longer an admin of the
    project."""
    digest = key_digest(text, settings.KEY_PEPPER)
    found = (
        _filter_open(Invitation.objects.filter(digest=digest))
        .select_related("project", "made_by")
        .first()
    )
    return found if found is not None and _is_maker_admin(found) else None


def list_open_invitations(project: Project) -> QuerySet[Invitation]:
    """Open invitations, newest first."""
    return (
        _filter_open(for_project(Invitation, project))
        .select_related("made_by")
        .order_by("-created_at", "-pk")
    )


def invitation_accept(*, invitation: Invitation, user: User, address: str | None = None) -> Member:
    """Adds the person to the project, or raises the role of a member. Raises InvitationError if the
    invitation is no longer open."""
    with write_transaction():
        # The lock serializes changes of members.
        Project.objects.select_for_update().get(pk=invitation.project_id)
        mine = _filter_open(Invitation.objects.filter(pk=invitation.pk))
        if not _is_maker_admin(invitation) or not mine.update(
            accepted_at=clock.now(), accepted_by=user
        ):
            raise InvitationError("invitation", "already used or revoked.")
        member = Member.objects.filter(project=invitation.project, user=user).first()
        before = member and {"role": member.role}
        if member is None:
            member = Member(
                project=invitation.project, user=user, role=invitation.role, created_at=clock.now()
            )
        elif not role_includes(Role(member.role), Role(invitation.role)):
            member.role = invitation.role
        member.save()
        _audit(
            "invitation.accept",
            invitation,
            user,
            address,
            before=before,
            after={"role": str(member.role)},
        )
    return member


def invitation_revoke(*, invitation: Invitation, actor: User, address: str | None = None) -> None:
    """Revokes an invitation, so that its link is invalid. Raises InvitationError."""
    with write_transaction():
        if not _filter_open(Invitation.objects.filter(pk=invitation.pk)).update(
            revoked_at=clock.now()
        ):
            raise InvitationError("invitation", "already used or revoked.")
        _audit("invitation.revoke", invitation, actor, address)


def _is_maker_admin(invitation: Invitation) -> bool:
    """True if the creator is still an active admin. Acceptance checks this again, since the right
    may have ended after the link was opened."""
    rows = Member.objects.filter(
        project=invitation.project_id,
        user=invitation.made_by_id,
        role=Role.ADMIN,
        user__is_active=True,
    )
    return invitation.made_by_id is not None and rows.exists()


def _filter_open(rows: QuerySet[Invitation]) -> QuerySet[Invitation]:
    return rows.filter(accepted_at=None, revoked_at=None, expires_at__gt=clock.now())


def _audit(
    action: str,
    invitation: Invitation,
    actor: User,
    address: str | None,
    before: object = None,
    after: object = None,
) -> None:
    audit_write(
        action=action,
        subject=f"invitation {invitation.pk}",
        project_id=invitation.project_id,
        actor=actor,
        before=before,
        after=after,
        address=address,
    )
