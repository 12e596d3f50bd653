"""Evidence of verdicts as the Fleet page needs it. The same text is read once: pages poll every
ten seconds, and a verdict changes at most once a minute."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from dashboard.ui.layout.change_rows import ChangeRow, build_change_rows, list_not_compared
from dashboard.vocabulary.severity import ROLL_BACK, WATCH

MAX_KEPT = 1024


@dataclass(frozen=True)
class EvidenceSummary:
    """The evaluated changes of a verdict, and the calls that were not compared."""

    as_roll_back: list[ChangeRow] = field(default_factory=list)
    as_watch: list[ChangeRow] = field(default_factory=list)
    not_compared: list[tuple[str, str]] = field(default_factory=list)

    def rows(self, kind: str) -> list[ChangeRow]:
        """The changes; a metric that drives a WATCH is a caution."""
        return self.as_watch if kind == WATCH else self.as_roll_back


NO_EVIDENCE = EvidenceSummary()
_KEPT: OrderedDict[bytes, EvidenceSummary] = OrderedDict()


def read_evidence(text: str) -> EvidenceSummary:
    """The summary of stored evidence."""
    key = blake2b(text.encode(), digest_size=16).digest()
    found = _KEPT.get(key)
    if found is None:
        found = _KEPT[key] = summarize_evidence(json.loads(text))
        while len(_KEPT) > MAX_KEPT:
            _KEPT.popitem(last=False)
    return found


def summarize_evidence(evidence: Mapping[str, Any] | None) -> EvidenceSummary:
    """The same of parsed evidence."""
    return EvidenceSummary(
        build_change_rows(evidence, ROLL_BACK),
        build_change_rows(evidence, WATCH),
        list_not_compared(evidence),
    )
