"""Versions in the table of a model: one page of all versions of an environment, in the requested
order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Min

from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.ui.http.sortable_table import Order
from dashboard.ui.pages.model.queries import MAX_VERSIONS_LISTED, ModelVerdicts


class VersionRun(NamedTuple):
    """A version and the start of its first deployment."""

    id: int
    name: str
    first: int


@dataclass(frozen=True)
class VersionList:
    """The versions of one page of the table, in their order, and the total number."""

    ids: list[int]
    total: int

    @property
    def whole(self) -> bool:
        """True if all versions are on this page, so that the table can be sorted by counts."""
        return self.total <= len(self.ids)


SORT_KEYS: dict[str, Callable[[VersionRun], Any]] = {
    "name": lambda ran: ran.name,
    "first": lambda ran: ran.first,
}


def list_versions(
    *, model: WatchedModel, standing: ModelVerdicts, order: Order, page: int
) -> VersionList:
    """Without a key of `KEYS`: the evaluated version, its baseline, then the others, newest first.
    Two queries if there are many versions."""
    ran = _list_runs(model, standing)
    if order.key in SORT_KEYS:
        ids = [one.id for one in sorted(ran, key=SORT_KEYS[order.key], reverse=order.descending)]
    else:
        newest = sorted(ran, key=SORT_KEYS["first"], reverse=True)
        known = {one.id for one in ran}
        ids = list(
            dict.fromkeys(id for id in (*standing.pair, *(one.id for one in newest)) if id in known)
        )
    first = (min(page, max(1, -(-len(ids) // MAX_VERSIONS_LISTED))) - 1) * MAX_VERSIONS_LISTED
    listed = VersionList(ids[first : first + MAX_VERSIONS_LISTED], len(ids))
    missing = set(listed.ids) - set(standing.latest)
    if missing:
        rows = Deployment.objects.filter(
            model=model, environment=standing.environment, version_id__in=missing
        )
        standing.deployments.extend(
            rows.select_related("version").order_by("-started_minute", "-pk")
        )
    return listed


def _list_runs(model: WatchedModel, standing: ModelVerdicts) -> list[VersionRun]:
    if standing.all_deployments:
        found: dict[int, VersionRun] = {}
        for row in standing.deployments:
            known = found.get(
                row.version_id, VersionRun(row.version_id, row.version.name, row.started_minute)
            )
            found[row.version_id] = known._replace(first=min(known.first, row.started_minute))
        return list(found.values())
    rows = Deployment.objects.filter(model=model, environment=standing.environment).order_by()
    spans = rows.values_list("version_id", "version__name").annotate(first=Min("started_minute"))
    return [VersionRun(*row) for row in spans]
