"""Hosts with an alert's confirmed facts, with links to their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.fleet.models import Instance
from dashboard.fleet.names import NAME_COLUMNS, NameColumns, process_name
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project
from dashboard.regressions.evidence_reader import read_facts
from dashboard.regressions.models import Verdict
from dashboard.regressions.stored_evidence import StoredFact
from dashboard.vocabulary.metrics import find_metric

NAMED = 4
"""Maximum number of named instances per fact; a link leads to all instances."""
_PAGES = {"ranks_diverged": "ranks"} | dict.fromkeys(
    ("parity", "shadow_parity", "non_finite", "compiled_nothing"), "parity"
)


@dataclass(frozen=True)
class FactHosts:
    """Hosts of one fact: id (empty without a page) and name of the first instances, the number of
    further instances, and the page with all instances."""

    what: str
    places: list[tuple[str, str]]
    more: int
    page: str


def list_fact_hosts(*, project: Project, verdicts: Iterable[Verdict | None]) -> list[FactHosts]:
    """Hosts of the newest verdict with a fact; later verdicts may lack data to compare."""
    facts = next(
        (
            found
            for verdict in verdicts
            if verdict is not None and (found := _news(verdict.evidence))
        ),
        [],
    )
    wanted = {id for fact in facts for id in (fact.instances or ())[:NAMED]}
    if not wanted:
        return []
    known = for_project(Instance, project).filter(instance_id__in=wanted).values_list(*NAME_COLUMNS)
    names = {who.instance_id: process_name(who) for who in map(NameColumns._make, known)}
    return [_places(fact, names) for fact in facts]


def _places(fact: StoredFact, names: Mapping[str, str]) -> FactHosts:
    ids = fact.instances or ()
    named = [(id if id in names else "", names.get(id, id)) for id in ids[:NAMED]]
    page = _PAGES.get(fact.kind, "instances")
    return FactHosts(find_metric(fact.kind).name, named, len(ids) - len(named), page)


def _news(evidence: Any) -> list[StoredFact]:
    return [fact for fact in read_facts(evidence) if fact.news and fact.instances is not None]
