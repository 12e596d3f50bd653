"""How long a sign-in lasts: 14 days at most, and 12 hours without a look unless somebody asked to stay signed in."""

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

IDLE = 12 * 3600
LONGEST = 14 * 86400
NOTED_EVERY = 600
"""A look is noted at most this often: pages that refresh themselves would write at each refresh."""

SINCE, SEEN = "signed_in_at", "seen_at"


class SessionAges:
    """Ends a sign-in that is too old. What a page fetches by itself is no look: a forgotten tab does not keep anybody signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Whoever is not signed in passes."""
        session = request.session
        if "_auth_user_id" in session:
            now = clock.unix()
            since, seen = session.setdefault(SINCE, now), session.setdefault(SEEN, now)
            idle_ends = session.get_expire_at_browser_close()
            if now - since > LONGEST or (idle_ends and now - seen > IDLE):
                logout(request)
            elif now - seen > NOTED_EVERY and "HX-Request" not in request.headers:
                session[SEEN] = now
                UserSession.objects.filter(session_key=session.session_key).update(last_seen_at=clock.now())
        return self._get_response(request)


@receiver(user_logged_in)
def _begins(request: HttpRequest | None, **_: Any) -> None:
    if request is not None and hasattr(request, "session"):
        request.session[SINCE] = request.session[SEEN] = clock.unix()


def sessions_forget() -> int:
    """Deletes what ended by itself: sessions nobody signed out of, and counts of sign-ins; returns how many sessions."""
    now = clock.now()
    gone, _ = Session.objects.filter(expire_date__lt=now).delete()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()
    CacheEntry.objects.filter(expires__lt=now).delete()
    return gone


def limits_forget() -> None:
    """As if nobody had tried to sign in."""
    cache.clear()
