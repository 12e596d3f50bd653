"""What a process does in its job, and from when on it counts as an instance. This is the only place
with these rules.

A process counts from its first call or compilation. A parent and a data worker never count, even if
they compile: what they compile is added to the totals of their version, and not to its number of
instances. An auxiliary process that calls or compiles counts like any other. An agent that reports
no role is taken for a worker."""

from __future__ import annotations

from typing import Protocol

UNCOUNTED_ROLES = ("parent", "data worker")
"""Roles that are never instances."""
AUXILIARY, WORKER, ENGINE = "auxiliary", "worker", "engine"


class RoleColumns(Protocol):
    """The columns of an instance that these rules read."""

    @property
    def role(self) -> str:
        """A role of the wire."""

    @property
    def active_minute(self) -> int | None:
        """The first minute with calls or compilations."""


def is_uncounted_role(role: str) -> bool:
    """Whether a process of this role is no instance, whatever it does."""
    return role in UNCOUNTED_ROLES


def is_helper(one: RoleColumns) -> bool:
    """Whether the process only helps its job, and is shown there."""
    return is_uncounted_role(one.role) or (one.role == AUXILIARY and one.active_minute is None)


def is_counted(one: RoleColumns) -> bool:
    """Whether the process enters per-instance figures."""
    return one.active_minute is not None and not is_uncounted_role(one.role)
