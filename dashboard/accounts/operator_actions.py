"""Operator actions on an account: close or reopen, remove the second factor, end the sessions."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common.write_lock import write_transaction


class OperatorActionError(ValueError):
    """Refused action; the text gives the reason."""


def user_active_set(*, user: User, active: bool, actor: User, address: str | None = None) -> None:
    """Closes an account and ends its sessions, or reopens the account."""
    if user.pk == actor.pk:
        raise OperatorActionError("You cannot close or reopen your own account.")
    with write_transaction():
        before, user.is_active = user.is_active, active
        user.save(update_fields=["is_active"])
        _audit(
            "user.open" if active else "user.close",
            user,
            actor,
            address,
            {"active": before},
            {"active": active},
        )
    if not active:
        _sessions_end(user)


def user_second_step_remove(*, user: User, actor: User, address: str | None = None) -> None:
    """Removes the second factor of a person who lost the app and the recovery codes. From then on
    the password alone signs the person in."""
    if user.pk == actor.pk:
        raise OperatorActionError("Remove your own second factor on your account page.")
    with write_transaction():
        gone, _ = Authenticator.objects.filter(user=user).delete()
        _audit("user.second_step", user, actor, address, None, {"removed": gone})


def user_sign_out(*, user: User, actor: User, address: str | None = None) -> None:
    """Ends every session of the person."""
    _sessions_end(user)
    _audit("user.sign_out", user, actor, address, None, None)


def _sessions_end(user: User) -> None:
    """Deletes the listed sessions, and older sessions that the list does not contain."""
    with write_transaction():
        known = UserSession.objects.filter(user=user)
        Session.objects.filter(
            session_key__in=list(known.values_list("session_key", flat=True))
        ).delete()
        known.delete()
    for session in Session.objects.all().iterator():
        if str(session.get_decoded().get("_auth_user_id")) == str(user.pk):
            session.delete()


def _audit(
    action: str, user: User, actor: User, address: str | None, before: object, after: object
) -> None:
    audit_write(
        action=action,
        subject=user.get_username(),
        actor=actor,
        before=before,
        after=after,
        address=address,
    )
