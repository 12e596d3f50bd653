"""Process names: the display name of a process. This module alone composes names."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from dashboard.fleet.fold.roles import WORKER


class NameColumns(NamedTuple):
    """Columns of an instance that its name consists of."""

    instance_id: str
    label: str
    host: str
    rank: int
    pid: int | None
    role: str


NAME_COLUMNS = NameColumns._fields


class Nameable(Protocol):
    """Object with the columns of a name."""

    @property
    def instance_id(self) -> str:
        """Id created by the agent."""

    @property
    def label(self) -> str:
        """Label set by the operator."""

    @property
    def host(self) -> str:
        """Host of the process."""

    @property
    def rank(self) -> int:
        """Rank in the job."""

    @property
    def pid(self) -> int | None:
        """Process id on the host."""

    @property
    def role(self) -> str:
        """Role as defined by the wire."""


def process_name(one: Nameable) -> str:
    """Return the operator's label, else host, rank and process id.

    Roles other than worker follow in parentheses.
    """
    name = one.label or _location(one)
    return f"{name} ({one.role})" if one.role not in ("", WORKER) else name


def _location(one: Nameable) -> str:
    if not one.host:
        return one.instance_id
    return f"{one.host} / rank {one.rank}" + (f" / pid {one.pid}" if one.pid else "")
