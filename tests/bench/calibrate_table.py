"""The tables of a calibration, from the stored deployments: false verdicts of healthy fleets, and
faults that were found, each share with its 95% interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import median
from typing import Any

from scipy.special import betaincinv

PEERS = {
    "pooled": "Welch",
    "kayenta": "Kayenta",
    "threshold": "threshold",
    "msprt": "mSPRT",
    "sequence": "confidence sequence",
}
LIMITED = ("twice the compile time", "cache hits 95 to 40%", "30 recompiles an hour", "p50 +5%")
"""Faults that are WATCH at most, or smaller than what matters."""
HEALTHY_HEAD = (
    "deployments",
    "false ROLL BACK",
    "at most",
    "false WATCH alone",
    "HEALTHY at the end",
    "NOT ENOUGH DATA at the end",
    "IMPROVED",
)
FAULTY_HEAD = (
    "deployments",
    "ROLL BACK",
    "WATCH alone",
    "median minutes to ROLL BACK",
    "to either",
    "named",
    "false before the onset",
    "HEALTHY at the end",
)
Line = Mapping[str, Any]


def is_faulty(line: Line) -> bool:
    """True with a fault that makes the version worse."""
    return line["onset"] is not None and not line["faster"]


def first(line: Line, *verdicts: str) -> int | None:
    """Minutes from the onset to the first of these verdicts that begins after it; from the
    deployment without a fault."""
    onset = line["onset"] if is_faulty(line) else 0
    found = [
        minute for minute, verdict in line["transitions"] if verdict in verdicts and minute >= onset
    ]
    return min(found) - onset if found else None


def is_false_before(line: Line) -> bool:
    """True if the version was WATCH or ROLL BACK before its fault began."""
    return any(
        verdict in ("watch", "roll_back") and minute < line["onset"]
        for minute, verdict in line["transitions"]
    )


def is_improved(line: Line) -> bool:
    """True if a metric of calls is IMPROVED at the end."""
    return any(label == "IMPROVED" for label, *_ in line["labels"].values())


def is_named(line: Line) -> bool:
    """True if the sentence of WATCH or ROLL BACK names the bucket or GPU type with the fault."""
    sentences = [line["sentences"].get(verdict, "") for verdict in ("watch", "roll_back")]
    return bool(line["part"]) and any(line["part"] in sentence for sentence in sentences)


def tables(lines: Sequence[Line], *, each: bool = False) -> Iterator[str]:
    """The totals, then a table for each group: one row per scenario, or with `each` one per
    scenario and layout."""
    runs = {(line["judge"], line["prior"], line["minutes"], line["seeds"]) for line in lines}
    if len(runs) > 1:
        raise SystemExit(
            "these deployments differ in judge, prior, minutes or seeds, so they do not fit into "
            f"one table: {sorted(runs)}"
        )
    for judge, prior, minutes, seeds in runs:
        yield (
            f"Simulated. {len(lines)} deployments, {minutes / 60:g} h each, prior of {prior}, "
            f"seeds for {seeds}, judge {judge}."
        )
    yield from ("", *totals(lines))
    for group in dict.fromkeys(line["group"] for line in lines):
        of = [line for line in lines if line["group"] == group]
        for faulty in (False, True):
            rows = [line for line in of if is_faulty(line) == faulty]
            if rows:
                yield from ("", f"**{group}{', with a fault' if faulty else ''}**", "")
                yield from table(rows, faulty, each)
    if lines:
        cost = sorted(line["cost"] for line in lines)
        yield (
            f"\nProcessor time of the judge per version and minute: median "
            f"{1e6 * median(cost):.0f} us, highest {1e6 * cost[-1]:.0f} us; "
            f"{sum(line['took'] for line in lines) / 60:.0f} min of processor time in total"
        )


def table(lines: Sequence[Line], faulty: bool, each: bool) -> Iterator[str]:
    """One group: its scenarios, then its layouts and the sum."""
    head = ("", *(FAULTY_HEAD if faulty else HEALTHY_HEAD), *PEERS.values(), "seeds", "CPU")
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    names = {f"{line['name']}, {line['layout']}" if each else line["name"]: None for line in lines}
    for name in names:
        of = [line for line in lines if name in (line["name"], f"{line['name']}, {line['layout']}")]
        yield row(name, of, faulty)
    if lines[0]["group"] == "question":
        return
    for layout in dict.fromkeys(line["layout"] for line in lines):
        yield row(f"*{layout}*", [line for line in lines if line["layout"] == layout], faulty)
    yield row("**all**", lines, faulty)


def row(name: str, lines: Sequence[Line], faulty: bool) -> str:
    """One row."""
    seeds = [line["seed"] for line in lines]
    cells = (
        name,
        str(len(lines)),
        *(faulty_cells(lines) if faulty else healthy_cells(lines)),
        *(share(sum(has_alarm(line, peer) for line in lines), len(lines)) for peer in PEERS),
        f"{min(seeds)}–{max(seeds)}",
        f"{sum(line['took'] for line in lines):.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def healthy_cells(lines: Sequence[Line]) -> tuple[str, ...]:
    """False verdicts, and how the deployments end."""
    count = len(lines)
    rolled = [line for line in lines if first(line, "roll_back") is not None]
    watched = [line for line in lines if line not in rolled and first(line, "watch") is not None]
    finals = [line["final"] for line in lines]
    return (
        share(len(rolled), count),
        f"{100 * upper_bound(len(rolled), count):.1f}%",
        share(len(watched), count),
        share(sum(final in ("healthy", "improved") for final in finals), count),
        share(finals.count("not_enough_data"), count),
        str(sum(map(is_improved, lines))),
    )


def faulty_cells(lines: Sequence[Line]) -> tuple[str, ...]:
    """Faults that were found, and after how long."""
    count = len(lines)
    in_part = [line for line in lines if line["part"]]
    rolled = [minute for line in lines if (minute := first(line, "roll_back")) is not None]
    either = [minute for line in lines if (minute := first(line, "roll_back", "watch")) is not None]
    return (
        share(len(rolled), count),
        share(len(either) - len(rolled), count),
        f"{median(rolled):.0f}" if rolled else "–",
        f"{median(either):.0f}" if either else "–",
        share(sum(map(is_named, lines)), len(in_part)) if in_part else "–",
        share(sum(map(is_false_before, lines)), count),
        share(sum(line["final"] == "healthy" for line in lines), count),
    )


def has_alarm(line: Line, peer: str) -> bool:
    """True if a peer raised its first alarm after the onset, or at any time without a fault."""
    minute = line["peers"].get(peer)
    return minute is not None and (not is_faulty(line) or minute >= line["onset"])


def totals(lines: Sequence[Line]) -> Iterator[str]:
    """The numbers of deployments, and the rates over all of them."""
    healthy = [line for line in lines if line["group"] == "healthy"]
    faulty = [line for line in lines if line["group"] == "faulty"]
    yield (
        f"{len(healthy)} healthy, {len(faulty)} faulty, "
        f"{len(lines) - len(healthy) - len(faulty)} deployments for questions."
    )
    for title, of in (
        ("healthy, adverse conditions", healthy),
        (
            "healthy, without jobs and hosts in turn",
            [line for line in healthy if " v " in line["layout"]],
        ),
    ):
        if of:
            cells = dict(zip(HEALTHY_HEAD[1:], healthy_cells(of), strict=True))
            yield f"- {title}: " + ", ".join(f"{name} {cell}" for name, cell in cells.items())
            yield f"  peers: {alarms(of)}"
    reasons = Counter(line["reason"] for line in healthy if line["final"] == "not_enough_data")
    if reasons:
        yield "- healthy that end NOT ENOUGH DATA, by reason: " + ", ".join(
            f"{reason} {count}" for reason, count in reasons.most_common()
        )
    of = [line for line in faulty if line["name"] not in LIMITED]
    if of:
        cells = dict(zip(FAULTY_HEAD[1:], faulty_cells(of), strict=True))
        yield "- faults that may be ROLL BACK, from +10%: " + ", ".join(
            f"{name} {cell}" for name, cell in cells.items()
        )
        yield f"  peers: {alarms(of)}"


def list_wrong(lines: Sequence[Line]) -> Iterator[str]:
    """Each false verdict and each fault that was not found, with its seed and sentence."""
    for line in lines:
        rolled, watched = first(line, "roll_back"), first(line, "watch")
        what = f"{line['name']}, {line['layout']}, seed {line['seed']}"
        if not is_faulty(line) and (rolled is not None or watched is not None):
            verdict, minute = ("watch", watched) if rolled is None else ("roll_back", rolled)
            yield f"- false {verdict} at {minute}: {what}: {line['sentences'][verdict]}"
        elif is_faulty(line) and is_false_before(line):
            yield f"- false before the onset: {what}: {line['transitions']}"
        if is_faulty(line) and rolled is None and line["name"] not in LIMITED:
            yield f"- no ROLL BACK, ends {line['final']}: {what}: {line['sentences']['final']}"


def alarms(lines: Sequence[Line]) -> str:
    """The shares of deployments in which the peers raised alarms."""
    return ", ".join(
        f"{title} {share(sum(has_alarm(line, peer) for line in lines), len(lines))}"
        for peer, title in PEERS.items()
    )


def share(part: int, whole: int) -> str:
    """A number with the 95% interval of its share."""
    low, high = wilson(part, whole)
    return f"{part} of {whole} ({100 * low:.0f} to {100 * high:.0f}%)"


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The 95% interval of a share."""
    found, z = part / whole, 1.96
    middle, half = (
        found + z * z / (2 * whole),
        z * sqrt(found * (1 - found) / whole + z * z / (4 * whole * whole)),
    )
    return max(0.0, (middle - half) / (1 + z * z / whole)), min(
        1.0, (middle + half) / (1 + z * z / whole)
    )


def upper_bound(part: int, whole: int) -> float:
    """The exact one-sided 95% upper bound of a share (Clopper and Pearson)."""
    return 1.0 if part == whole else float(betaincinv(part + 1, whole - part, 0.95))
