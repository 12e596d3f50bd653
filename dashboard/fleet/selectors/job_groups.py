"""Job groups: processes grouped by job, and by server, which is an engine's processes on one
host."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from dashboard.fleet.fold.roles import ENGINE, WORKER, is_helper
from dashboard.fleet.models import Instance

Server = tuple[int, str, str]
"""ModelVersion.id, job and host. Without a job, all engines of a version on a host form one
server."""
NO_SERVER: Server = (0, "", "")


class Groups:
    """Processes of a list, grouped by server, job or host."""

    def __init__(self, processes: Iterable[Instance]) -> None:
        everyone = list(processes)
        self._servers = {_on_host(one) for one in everyone if one.role == ENGINE and one.host}
        self._roles: dict[Server, Counter[str]] = defaultdict(Counter)
        self._helpers: dict[Server, Counter[str]] = defaultdict(Counter)
        for one in everyone:
            table = self._helpers if is_helper(one) else self._roles
            table[self.group_of(one)][one.role or WORKER] += 1

    def server_of(self, one: Instance) -> Server | None:
        """Return the server of the process; None without a server, or if the process is the entire
        server."""
        server = _on_host(one)
        return server if server in self._servers and self._size(server) > 1 else None

    def group_of(self, one: Instance) -> Server:
        """Return the group of the process: its server, else its job on all hosts, else its host."""
        server = _on_host(one)
        return (one.version_id, one.job, "") if one.job and server not in self._servers else server

    def roles_of(self, group: Server) -> Counter[str]:
        """Return the number of the group's instances by role."""
        return self._roles[group]

    def helpers_of(self, group: Server) -> Counter[str]:
        """Return the number of the group's helper processes by role."""
        return self._helpers[group]

    def _size(self, group: Server) -> int:
        return self._roles[group].total() + self._helpers[group].total()


def _on_host(one: Instance) -> Server:
    return one.version_id, one.job, one.host
