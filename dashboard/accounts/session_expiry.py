"""Session expiry: 14 days after sign-in, or 12 idle hours unless the person chose to stay signed
in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib.auth import logout
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from dashboard.common import clock
from dashboard.common.models import CacheEntry

IDLE_TIMEOUT_S = 12 * 3600
MAX_SESSION_AGE_S = 14 * 86400
LAST_SEEN_UPDATE_INTERVAL_S = 600
"""Minimum seconds between two updates of the last activity. Pages that refresh automatically would
otherwise write at each refresh."""

SIGNED_IN_AT_KEY, SEEN_AT_KEY = "signed_in_at", "seen_at"


class SessionExpiryMiddleware:
    """Ends expired sessions. Automatic refreshes do not count as activity, so a forgotten tab does
    not keep a session alive."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Checks the session of a signed-in user; anonymous requests pass."""
        session = request.session
        if "_auth_user_id" in session:
            now = clock.unix()
            since, seen = (
                session.setdefault(SIGNED_IN_AT_KEY, now),
                session.setdefault(SEEN_AT_KEY, now),
            )
            idle_ends = session.get_expire_at_browser_close()
            if now - since > MAX_SESSION_AGE_S or (idle_ends and now - seen > IDLE_TIMEOUT_S):
                logout(request)
            elif now - seen > LAST_SEEN_UPDATE_INTERVAL_S and "HX-Request" not in request.headers:
                session[SEEN_AT_KEY] = now
                UserSession.objects.filter(session_key=session.session_key).update(
                    last_seen_at=clock.now()
                )
        return self._get_response(request)


@receiver(user_logged_in)
def _record_sign_in(request: HttpRequest | None, **_: Any) -> None:
    if request is not None and hasattr(request, "session"):
        request.session[SIGNED_IN_AT_KEY] = request.session[SEEN_AT_KEY] = clock.unix()


def delete_expired_sessions() -> int:
    """Deletes expired sessions and expired counters of sign-ins. Returns the number of sessions."""
    now = clock.now()
    gone, _ = Session.objects.filter(expire_date__lt=now).delete()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()
    CacheEntry.objects.filter(expires__lt=now).delete()
    return gone


def reset_sign_in_limits() -> None:
    """Clears the counters of failed sign-ins."""
    cache.clear()
