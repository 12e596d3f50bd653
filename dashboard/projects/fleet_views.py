"""Saved views of the Fleet page: names and addresses that a member keeps for one project."""

from __future__ import annotations

from dashboard.accounts.models import User
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.projects.models import Member, Project

MAX_VIEWS, MAX_NAME_LENGTH, MAX_QUERY_LENGTH = 20, 40, 1000


def fleet_view_save(*, project: Project, user: User, name: str, query: str) -> None:
    """Saves a view; one with the same name is replaced. Raises FieldError."""
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise FieldError("name", f"expected 1 to {MAX_NAME_LENGTH} characters.")
    if len(query) > MAX_QUERY_LENGTH:
        raise FieldError("view", f"its address exceeds {MAX_QUERY_LENGTH:,} characters.")
    with write_transaction():
        member = _lock_member(project, user)
        views = [one for one in _views(member) if one.get("name") != name]
        if len(views) >= MAX_VIEWS:
            raise FieldError("view", f"at most {MAX_VIEWS} views. Delete one first.")
        member.fleet_views = [*views, {"name": name, "query": query}]
        member.save(update_fields=["fleet_views"])


def fleet_view_delete(*, project: Project, user: User, name: str) -> None:
    """Deletes a view; nothing happens if it does not exist."""
    with write_transaction():
        member = _lock_member(project, user)
        member.fleet_views = [one for one in _views(member) if one.get("name") != name]
        member.save(update_fields=["fleet_views"])


def _lock_member(project: Project, user: User) -> Member:
    return Member.objects.select_for_update().get(project=project, user=user)


def _views(member: Member) -> list[dict[str, str]]:
    held = member.fleet_views if isinstance(member.fleet_views, list) else []
    return [one for one in held if isinstance(one, dict)]
