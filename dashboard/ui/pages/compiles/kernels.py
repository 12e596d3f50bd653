"""Autotune divergence: kernels that autotuning chose in the processes of a version, per GPU
type."""

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
    """One kernel with the processes that chose it."""

    kernel: str
    processes: int
    who: str


@dataclass(frozen=True)
class KernelDivergence:
    """An operator with its inputs for which processes on one GPU type chose different kernels, most
    frequent kernel first."""

    operator: str
    gpu: str
    choices: list[KernelChoice]


@dataclass(frozen=True)
class KernelsCard:
    """All data of the card. `told` counts operators with a reported choice, `shared` operators with
    choices of several processes on one GPU type."""

    apart: list[KernelDivergence]
    told: int
    shared: int
    processes: int
    silent: int

    @property
    def verdict(self) -> str:
        """One line for the header."""
        if not self.shared:
            return "no operator was autotuned by two processes on one GPU type"
        if not self.apart:
            return f"no divergence for {numbers.plural(self.shared, 'operator')}"
        return (
            f"different kernels for {numbers.number(len(self.apart))} of "
            f"{numbers.plural(self.shared, 'operator')}"
        )


def kernels_card(own: Sequence[ProcessStart]) -> KernelsCard | None:
    """The card of a version; None if no process reported an autotune choice."""
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
    """The card as JSON."""
    return None if card is None else asdict(card)
