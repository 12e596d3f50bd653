"""Audit log of one project: pages and filter values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet

from dashboard.accounts.models import AuditEntry
from dashboard.projects.models import Key, Project
from dashboard.projects.selectors import for_project

PAGE_SIZE = 50
MAX_EXPORTED = 10_000
MAX_VALUE_LENGTH = 400
KEY_KINDS = {kind: str(label).lower() for kind, label in Key._meta.get_field("kind").flatchoices}


@dataclass(frozen=True)
class AuditFilter:
    """The filter; empty values match everything."""

    action: str = ""
    who: str = ""
    about: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The filter as URL parameters."""
        return {
            name: value
            for name, value in (("action", self.action), ("who", self.who), ("about", self.about))
            if value
        }


def query_audit_entries(*, project: Project, wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """Matching entries, newest first."""
    rows = for_project(AuditEntry, project).order_by("-at", "-pk")
    if wanted.action:
        rows = rows.filter(Q(action=wanted.action) | Q(action__startswith=f"{wanted.action}."))
    if wanted.who:
        rows = rows.filter(actor_name=wanted.who)
    return rows.filter(subject__icontains=wanted.about) if wanted.about else rows


def read_audit_page(*, project: Project, wanted: AuditFilter, number: int) -> Page[AuditEntry]:
    """One page; a number beyond the end returns the last page."""
    return Paginator(query_audit_entries(project=project, wanted=wanted), PAGE_SIZE).get_page(
        number
    )


def list_audit_choices(*, project: Project) -> tuple[list[str], list[str]]:
    """The action groups and the names of people in the log."""
    rows = for_project(AuditEntry, project)
    actions = {
        action.partition(".")[0] for action in rows.values_list("action", flat=True).distinct()
    }
    return sorted(actions), sorted(rows.values_list("actor_name", flat=True).distinct())


def format_audit_value(value: Any) -> str:
    """A value before or after a change, on one line, without empty parts."""
    if value is None:
        return ""
    if isinstance(value, dict):
        text = ", ".join(
            f"{name.replace('_', ' ')}: {_format_value(one, name)}"
            for name, one in value.items()
            if one not in ("", None)
        )
    else:
        text = _format_value(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def _format_value(value: Any, name: str = "") -> str:
    """Formats a value as text; nested values stay in their stored form."""
    if isinstance(value, str):
        return KEY_KINDS.get(value, value) if name == "kind" else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return " ".join(_format_value(one) for one in value) or "none"
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
