"""Role filters: the rules of `fleet.fold.roles` as conditions of queries."""

from __future__ import annotations

from django.db.models import F, Q

from dashboard.fleet.fold.roles import AUXILIARY, UNCOUNTED_ROLES


def where_counted() -> Q:
    """Return the condition for processes that enter per-instance metrics."""
    return Q(active_minute__isnull=False) & ~Q(role__in=UNCOUNTED_ROLES)


def where_helping() -> Q:
    """Return the condition for processes that only help their job."""
    return Q(role__in=UNCOUNTED_ROLES) | Q(role=AUXILIARY, active_minute__isnull=True)


def where_ended() -> Q:
    """Return the condition for processes whose last report announced their end."""
    return Q(ended_at__isnull=False, ended_at__gte=F("last_seen_at"))
