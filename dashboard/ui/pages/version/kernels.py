"""Whether processes of one version run the same kernels: what autotuning chose on each, on the same
type of GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilewatch.wire.messages import KERNEL

from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.vocabulary import numbers

NAMED, SHOWN = 3, 32


@dataclass(frozen=True)
class KernelChoice:
    """One kernel, and who chose it."""

    kernel: str
    processes: int
    who: str


@dataclass(frozen=True)
class KernelDivergence:
    """An operator with its inputs for which processes on one type of GPU chose different kernels;
    the most frequent first."""

    operator: str
    gpu: str
    choices: list[KernelChoice]


@dataclass(frozen=True)
class KernelsCard:
    """What the card shows; `told` counts operators, `shared` those that several processes on one
    type of GPU chose for."""

    apart: list[KernelDivergence]
    told: int
    shared: int
    processes: int
    silent: int

    @property
    def verdict(self) -> str:
        """One line for the head."""
        if not self.shared:
            return "no two processes on one type of GPU chose for the same operator and inputs"
        if not self.apart:
            return f"the same on all processes, for {numbers.plural(self.shared, 'operator')}"
        return (
            f"not the same on all processes for {numbers.number(len(self.apart))} of "
            f"{numbers.plural(self.shared, 'operator')}"
        )


def kernels_card(own: Sequence[ProcessStart]) -> KernelsCard | None:
    """The card of a version; None where none of its processes told of a choice."""
    chosen: dict[tuple[str, str], dict[str, list[ProcessStart]]] = {}
    telling = 0
    for process in own:
        mine = {
            name: value for name, value in process.components.items() if name.startswith(KERNEL)
        }
        telling += bool(mine)
        for name, value in mine.items():
            chosen.setdefault((name.removeprefix(KERNEL), process.gpu or "CPU"), {}).setdefault(
                value, []
            ).append(process)
    if not chosen:
        return None
    shared = {place: by for place, by in chosen.items() if sum(map(len, by.values())) > 1}
    apart = [
        KernelDivergence(*place, _choices(by))
        for place, by in sorted(shared.items())
        if len(by) > 1
    ]
    return KernelsCard(apart[:SHOWN], len(chosen), len(shared), len(own), len(own) - telling)


def _choices(by: dict[str, list[ProcessStart]]) -> list[KernelChoice]:
    found = []
    for kernel, processes in sorted(by.items(), key=lambda item: (-len(item[1]), item[0])):
        more = f" and {len(processes) - NAMED} more" if len(processes) > NAMED else ""
        found.append(
            KernelChoice(
                kernel, len(processes), ", ".join(one.name for one in processes[:NAMED]) + more
            )
        )
    return found


def kernels_json(card: KernelsCard | None) -> dict[str, Any] | None:
    """The same for machines."""
    return None if card is None else asdict(card)
