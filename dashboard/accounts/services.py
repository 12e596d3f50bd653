"""Services that write users and the audit log."""

from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from dashboard.accounts.models import AuditEntry, User
from dashboard.common import clock
from dashboard.common.write_lock import acquire_advisory_lock, write_transaction


def audit_write(
    *,
    action: str,
    subject: str,
    project_id: int | None = None,
    actor: User | None = None,
    actor_name: str = "",
    before: Any = None,
    after: Any = None,
    address: str | None = None,
) -> AuditEntry:
    """Adds one audit entry. Without an actor, `actor_name` names the command or machine."""
    if actor is None and not actor_name:
        raise ValueError("an audit entry needs an actor or an actor_name")
    return AuditEntry.objects.create(
        at=clock.now(),
        project_id=project_id,
        actor=actor,
        actor_name=actor_name or (actor.get_username() if actor else ""),
        action=action,
        subject=subject[:200],
        before=before,
        after=after,
        address=address,
    )


def user_create(
    *,
    username: str,
    password: str,
    email: str = "",
    is_staff: bool = False,
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> User:
    """Creates a person who can sign in. Raises ValidationError for a weak password. Rights come
    from memberships."""
    user = user_build(username=username, password=password, email=email, is_staff=is_staff)
    user_store(user=user, actor=actor, actor_name=actor_name, address=address)
    return user


def user_build(*, username: str, password: str, email: str = "", is_staff: bool = False) -> User:
    """Builds an unsaved user. Hashing takes about half a second, so it happens outside the lock."""
    user = User(username=username, email=email, is_staff=is_staff)
    validate_password(password, user)
    user.set_password(password)
    user.full_clean()
    return user


def user_store(
    *, user: User, actor: User | None = None, actor_name: str = "", address: str | None = None
) -> None:
    """Stores a user from `user_build`. Raises ValidationError if the name is taken.

    Sign-in ignores the case of names. Two names that differ only in case would lock out both users.
    """
    name = user.get_username()
    with write_transaction():
        acquire_advisory_lock("user names")
        if name.casefold() in {
            taken.casefold() for taken in User.objects.values_list("username", flat=True)
        }:
            raise ValidationError({"username": "A user with that username already exists."})
        user.save()
        by = actor_name or ("" if actor else "command")
        audit_write(
            action="user.create",
            subject=name,
            actor=actor,
            actor_name=by,
            after={"staff": user.is_staff},
            address=address,
        )


def user_theme_set(*, user: User, theme: str, address: str | None = None) -> None:
    """Sets the theme of the pages: system, light or dark."""
    before = user.theme
    user.theme = theme
    user.full_clean()
    with write_transaction():
        user.save(update_fields=["theme"])
        audit_write(
            action="user.theme",
            subject=user.get_username(),
            actor=user,
            before={"theme": before},
            after={"theme": theme},
            address=address,
        )
