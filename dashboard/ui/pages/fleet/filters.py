"""Text filter of the Fleet page: words and prefixes such as `gpu:H200 env:production`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.http import QueryDict

from dashboard.ui.http.time_range import replace_query
from dashboard.ui.pages.fleet.states import ModelState

MAX_LENGTH, MAX_TERMS = 400, 12
_TERM = re.compile(r'(?:([A-Za-z]+):)?(?:"([^"]*)"|(\S+))')


def _versions(one: ModelState) -> list[str]:
    return [run.version.name for run in one.live]


_FIELDS: dict[str, Callable[[ModelState], Iterable[str]]] = {
    "model": lambda one: [one.model.name],
    "version": _versions,
    "gpu": lambda one: one.gpus,
    "environment": lambda one: one.environments,
    "status": lambda one: [one.kind, one.kind.replace("_", " ")],
}
ALIASES = {"name": "model", "env": "environment", "verdict": "status"}
PREFIXES = (*_FIELDS, *ALIASES)
ANY_FIELD = ("model", "version", "gpu", "environment")


@dataclass(frozen=True)
class FilterTerm:
    """One term; `field` is empty for a word without a prefix. `text` is as the person wrote it."""

    field: str
    value: str
    text: str

    def matches(self, one: ModelState) -> bool:
        """Whether a field contains the value; upper and lower case are equal."""
        wanted = self.value.casefold()
        names = (self.field,) if self.field else ANY_FIELD
        return any(wanted in text.casefold() for name in names for text in _FIELDS[name](one))


@dataclass(frozen=True)
class FilterChip:
    """A removable filter: `query` is the address without it."""

    label: str
    query: str


def parse_filter(text: str) -> list[FilterTerm]:
    """The terms of a text. An unknown prefix is part of the word."""
    found = []
    for match in list(_TERM.finditer(text[:MAX_LENGTH]))[:MAX_TERMS]:
        prefix, quoted, word = match[1] or "", match[2], match[3]
        value, name = quoted if quoted is not None else word, prefix.casefold()
        name = ALIASES.get(name, name)
        if prefix and name not in _FIELDS:
            name, value = "", f"{prefix}:{value}"
        if value:
            found.append(FilterTerm(name, value, match[0]))
    return found


def apply_filter(terms: Iterable[FilterTerm], states: Iterable[ModelState]) -> list[ModelState]:
    """The models that match every term."""
    wanted = list(terms)
    return [one for one in states if all(term.matches(one) for term in wanted)]


def list_chips(query: QueryDict, terms: list[FilterTerm], environment: str) -> list[FilterChip]:
    """One chip per term, and one for the environment."""
    chips = []
    if environment:
        chips.append(
            FilterChip(f"environment: {environment}", replace_query(query, env="", page=""))
        )
    for place, term in enumerate(terms):
        rest = " ".join(other.text for number, other in enumerate(terms) if number != place)
        label = f"{term.field}: {term.value}" if term.field else term.value
        chips.append(FilterChip(label, replace_query(query, q=rest, page="")))
    return chips
