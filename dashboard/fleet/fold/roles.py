"""Process roles: which processes count as instances, and from when. This module alone holds the
rules.

A process counts from its first call or compilation. Parents and data workers never count, even if
they compile. Their compilations enter the totals of the version, but not its instance count. An
auxiliary process that calls or compiles counts like any other. An agent without a reported role is
a worker.
"""

from __future__ import annotations

from typing import Protocol

UNCOUNTED_ROLES = ("parent", "data worker")
"""Roles that never count as instances."""
AUXILIARY, WORKER, ENGINE = "auxiliary", "worker", "engine"


class RoleColumns(Protocol):
    """Columns of an instance that the rules read."""

    @property
    def role(self) -> str:
        """Role as defined by the wire."""

    @property
    def active_minute(self) -> int | None:
        """First minute with calls or compilations."""


def is_uncounted_role(role: str) -> bool:
    """Return whether a process of this role is never an instance."""
    return role in UNCOUNTED_ROLES


def is_helper(one: RoleColumns) -> bool:
    """Return whether the process only helps its job and is shown with the job."""
    return is_uncounted_role(one.role) or (one.role == AUXILIARY and one.active_minute is None)


def is_counted(one: RoleColumns) -> bool:
    """Return whether the process enters per-instance metrics."""
    return one.active_minute is not None and not is_uncounted_role(one.role)
