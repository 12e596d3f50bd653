"""The rules of `fleet.fold.roles` as conditions on rows of instances."""

from __future__ import annotations

from django.db.models import F, Q

from dashboard.fleet.fold.roles import AUXILIARY, UNCOUNTED_ROLES


def where_counted() -> Q:
    """Processes that enter per-instance figures."""
    return Q(active_minute__isnull=False) & ~Q(role__in=UNCOUNTED_ROLES)


def where_helping() -> Q:
    """Processes that only help their job."""
    return Q(role__in=UNCOUNTED_ROLES) | Q(role=AUXILIARY, active_minute__isnull=True)


def where_ended() -> Q:
    """Processes whose last report says that they end."""
    return Q(ended_at__isnull=False, ended_at__gte=F("last_seen_at"))
