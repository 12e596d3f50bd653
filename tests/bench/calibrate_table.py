"""The table of a calibration, from what was said of each deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import sqrt
from statistics import median
from typing import Any

PEERS = ("pooled", "kayenta", "threshold")
HEAD = (
    "",
    "| | deployments | ROLL BACK, median | WATCH alone, median | HEALTHY after 1, 6, 24 h | pooled | Kayenta | threshold | seeds | CPU |",
    "|---|---|---|---|---|---|---|---|---|---|",
)
FALSE_ALARMS = (
    ("side by side, healthy and confounded", ("healthy", "confounded")),
    ("one after the other, healthy", ("sequential, healthy",)),
    ("a worse world, healthy", ("worse world, healthy", "worse world still, healthy")),
)
ASKED = {
    "p50 +5 %": (0, 0, 33),
    "p50 +10 %": (7, 27, 100),
    "p50 +20 %": (53, 100, 100),
    "p50 +50 %": (100, 100, 100),
    "p99 alone +30 %": (97, 100, 100),
    "errors .1 to 1 %": (63, 97, 100),
    "half the calls eager on 30 % of instances": (100, 100, 100),
    "GPU memory +20 %": (100, 100, 100),
    "a leak of 2 % an hour": (100, 100, 100),
    "twice the compile time": (43, 87, 100),
    "cache hits 95 to 40 %": (100, 100, 100),
    "30 recompiles an hour": (100, 100, 100),
}
"""The per cent to be found on one canary, two beside three a type, and four hosts one after the other, in 24 h."""
WATCH_IS_FOUND = {"twice the compile time", "cache hits 95 to 40 %", "30 recompiles an hour"}
"""They ask for WATCH by themselves, and for no more."""

Line = Mapping[str, Any]
Row = tuple[str, str]


def table(lines: Sequence[Line], order: Sequence[Row]) -> Iterator[str]:
    """Every row that has a deployment, in order, and what the goals are about."""
    judges = {(line["judge"], line["prior"], line["minutes"]) for line in lines}
    if len(judges) > 1:
        raise SystemExit(f"these deployments were not watched alike (judge, prior, minutes), so no table holds them all: {sorted(judges)}")
    rows: dict[Row, list[Line]] = {row: [] for row in order}
    for line in lines:
        rows[line["group"], line["name"]].append(line)
    for judge, prior, minutes in judges:
        yield f"Simulated. {len(lines)} deployments, {minutes / 60:g} h each, prior of {prior}, judge {judge}."
    for group, of in groupby((row for row in order if rows[row]), key=lambda row: row[0]):
        yield from ("", f"**{group}**", *HEAD)
        yield from (said(name, rows[group, name]) for _, name in of)
    yield from ("", *false_alarms(lines), "", *beneath(rows))
    yield f"\n{sum(line['took'] for line in lines) / 60:.0f} min of processor time in all"


def said(name: str, lines: Sequence[Line]) -> str:
    """One row."""
    count = len(lines)
    watched = [line["watch"] for line in lines if line["roll_back"] is None]
    cells = (
        f"{name} | {count}",
        times([line["roll_back"] for line in lines], f" of {count}"),
        times(watched, ""),
        " · ".join(percent(sum(looks), count) for looks in zip(*(line["healthy"] for line in lines), strict=True)) or "–",
        *(percent(alarms(lines, peer), count) for peer in PEERS),
        f"{min(line['seed'] for line in lines)}–{max(line['seed'] for line in lines)}",
        f"{sum(line['took'] for line in lines):.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def times(minutes: Sequence[int | None], of: str) -> str:
    """How many there are, and when."""
    found = [minute for minute in minutes if minute is not None]
    return f"{len(found)}{of}" + (f", {median(found):.0f} min" if found else "")


def alarms(lines: Sequence[Line], peer: str) -> int:
    """In how many a peer raised one."""
    return sum(line["peers"][peer] is not None for line in lines)


def percent(part: int, whole: int) -> str:
    """A share without digits that mean nothing."""
    return f"{100 * part / whole:.0f} %"


def false_alarms(lines: Sequence[Line]) -> Iterator[str]:
    """What the goals are about, over all healthy and confounded deployments, with the 95 % interval of the share."""
    for title, groups in FALSE_ALARMS:
        of = [line for line in lines if line["group"] in groups]
        if of:
            false = sum(line["roll_back"] is not None for line in of)
            watch_only = sum(line["roll_back"] is None and line["watch"] is not None for line in of)
            low, high = wilson(false, len(of))
            yield (
                f"- {title}: {false} of {len(of)} falsely ROLL BACK ({100 * false / len(of):.2f} %, "
                f"{100 * low:.2f} to {100 * high:.2f} %), {watch_only} WATCH ({100 * watch_only / len(of):.1f} %); peers' alarms: "
                + ", ".join(f"{peer} {percent(alarms(of, peer), len(of))}" for peer in PEERS)
            )


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    share, z = part / whole, 1.96
    middle, half = share + z * z / (2 * whole), z * sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    return max(0.0, (middle - half) / (1 + z * z / whole)), (middle + half) / (1 + z * z / whole)


def beneath(rows: Mapping[Row, Sequence[Line]]) -> Iterator[str]:
    """The faults that are found less often than is asked, by more than the sampling error."""
    for fault, shares in ASKED.items():
        names = [(row, lines) for row, lines in rows.items() if row[1].startswith(f"{fault}, ") and row[0].startswith("fault")]
        for share, ((_, name), lines) in zip(shares, names, strict=False):
            if lines:
                kinds = ("roll_back", "watch") if fault in WATCH_IS_FOUND else ("roll_back",)
                found = sum(any(line[kind] is not None for kind in kinds) for line in lines)
                if wilson(found, len(lines))[1] < share / 100:
                    yield f"- {name}: found in {found} of {len(lines)}; {share} % is asked"
