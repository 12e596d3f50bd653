"""How people call a process. This is the only place that makes such a name."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from dashboard.fleet.fold.roles import WORKER


class NameColumns(NamedTuple):
    """The columns of an instance that its name is made of, under their own names."""

    instance_id: str
    label: str
    host: str
    rank: int
    pid: int | None
    role: str


NAME_COLUMNS = NameColumns._fields


class Nameable(Protocol):
    """Whatever has these columns."""

    @property
    def instance_id(self) -> str:
        """The id that the agent made."""

    @property
    def label(self) -> str:
        """What its operator calls it."""

    @property
    def host(self) -> str:
        """Where it runs."""

    @property
    def rank(self) -> int:
        """Its number in its job."""

    @property
    def pid(self) -> int | None:
        """Its number on its host."""

    @property
    def role(self) -> str:
        """A role of the wire."""


def process_name(one: Nameable) -> str:
    """The label that its operator gave it, else host, rank and process id; with the role of a
    process that is no worker."""
    name = one.label or _location(one)
    return f"{name} ({one.role})" if one.role not in ("", WORKER) else name


def _location(one: Nameable) -> str:
    if not one.host:
        return one.instance_id
    return f"{one.host} / rank {one.rank}" + (f" / pid {one.pid}" if one.pid else "")
