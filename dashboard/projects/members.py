"""Project members: roles and removal. Every project keeps at least one admin."""

from __future__ import annotations

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.projects.models import Member, Project, Role


class MemberError(FieldError):
    """A refused change of a member."""


def member_role_set(
    *, project: Project, user_id: int, role: str, actor: User, address: str | None = None
) -> Member:
    """Sets the role of a member. Raises MemberError for an unknown role, and for the last admin."""
    if role not in Role.values:
        raise MemberError("role", f"expected one of {', '.join(Role.values)}.")
    with write_transaction():
        member = _lock_member(project, user_id)
        before = member.role
        if before == role:
            return member
        _require_other_admin(project, member)
        member.role = role
        member.save(update_fields=["role"])
        _audit("member.set", member, actor, address, {"role": before}, {"role": role})
    return member


def member_remove(
    *, project: Project, user_id: int, actor: User, address: str | None = None
) -> Member:
    """Removes a member, whose next request gets 404. Raises MemberError for the last admin."""
    with write_transaction():
        member = _lock_member(project, user_id)
        _require_other_admin(project, member)
        _audit("member.remove", member, actor, address, {"role": member.role}, None)
        member.delete()
    return member


def _lock_member(project: Project, user_id: int) -> Member:
    """Locks the project's members and returns the member. Raises MemberError."""
    Project.objects.select_for_update().get(pk=project.pk)
    member = Member.objects.select_related("user").filter(project=project, user_id=user_id).first()
    if member is None:
        raise MemberError("member", "not found; removed in the meantime.")
    return member


def _require_other_admin(project: Project, member: Member) -> None:
    others = Member.objects.filter(project=project, role=Role.ADMIN, user__is_active=True).exclude(
        pk=member.pk
    )
    if member.role == Role.ADMIN and not others.exists():
        raise MemberError(
            "member",
            f"{member.user.get_username()} is the only admin; make another member an admin first.",
        )


def _audit(
    action: str, member: Member, actor: User, address: str | None, before: object, after: object
) -> None:
    audit_write(
        action=action,
        subject=member.user.get_username(),
        project_id=member.project_id,
        actor=actor,
        before=before,
        after=after,
        address=address,
    )
