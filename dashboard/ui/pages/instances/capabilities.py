"""Capabilities of a process: signals that its torch and agent report fully, partly or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.vocabulary.capabilities import explain_capability


@dataclass(frozen=True)
class Capability:
    """One signal that torch and the agent report fully, partly or not."""

    name: str
    means: str
    answer: str
    why: str

    @property
    def mark(self) -> str:
        """The name of the mark's shape."""
        return {"yes": "done", "partly": "state-warming"}.get(self.answer, "state-blind")


def explain_capabilities(table: Any) -> list[Capability]:
    """Capabilities, with unreported and partly reported signals first."""
    found = []
    for key, answer in table.items() if isinstance(table, Mapping) else ():
        said, why = (
            (str(answer[0]), str(answer[1]))
            if isinstance(answer, list | tuple) and len(answer) > 1
            else (str(answer), "")
        )
        found.append(Capability(key.replace("_", " "), explain_capability(key), said, why))
    order = ("no", "partly")
    return sorted(
        found,
        key=lambda one: (order.index(one.answer) if one.answer in order else len(order), one.name),
    )
