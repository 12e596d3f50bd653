"""The table of a calibration, from the verdicts of each deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import comb, sqrt
from statistics import median
from typing import Any, NamedTuple

PEERS = ("pooled", "kayenta", "threshold")
HEAD = (
    "",
    "| | deployments | labelled, median | goal | ROLL BACK, median | WATCH alone, median | "
    "HEALTHY after 1, 6, 24 h | pooled | Kayenta "
    "| threshold | seeds | CPU |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
)
FALSE_ALARMS = (
    ("side by side, healthy and confounded", ("healthy", "confounded")),
    ("one after the other, healthy", ("sequential, healthy",)),
    ("a worse world, healthy", ("worse world, healthy", "worse world still, healthy")),
)


class Goal(NamedTuple):
    """The metric of a fault, and the required percentage of labelled deployments for one canary,
    two candidates with three baselines per type, and four hosts in turn."""

    metric: str
    asked: tuple[int, ...] = ()


GOALS = {
    "p50 +5%": Goal("p50", (0, 0, 33)),
    "p50 +10%": Goal("p50", (7, 27, 100)),
    "p50 +20%": Goal("p50", (53, 100, 100)),
    "p50 +50%": Goal("p50", (100, 100, 100)),
    "p99 alone +30%": Goal("p99", (97, 100, 100)),
    "errors .1 to 1%": Goal("errors", (63, 97, 100)),
    "half the calls eager on 30% of instances": Goal("eager", (100, 100, 100)),
    "a fifth fewer items in the same time": Goal("throughput"),
    "GPU memory +20%": Goal("gpu_memory", (100, 100, 100)),
    "a leak of 2% an hour": Goal("leak", (100, 100, 100)),
    "twice the compile time": Goal("compile_time", (43, 87, 100)),
    "cache hits 95 to 40%": Goal("cache", (100, 100, 100)),
    "30 recompiles an hour": Goal("recompiles", (100, 100, 100)),
}
LAYOUTS = ("1 v 3+3", "2 v 3+3", "4 hosts, one after the other")
"""In the order of the required percentages."""
HARD = ("p50", "p99", "throughput", "eager", "gpu_memory", "leak")
"""In a healthy fleet, a label of any of these metrics is false. Bursts of errors are labelled for
minutes and reported separately."""
HALF_A_PER_CENT = 0.005
"""Required percentages are rounded to whole percent."""
REFERENCE_TRIALS = 30
"""Deployments behind each required percentage. The reference procedure does not state their number.
Thirty is the smallest number that yields all of its percentages, rounded to whole percent, from
whole deployments."""
UNLIKELY = 0.025

Line = Mapping[str, Any]
Row = tuple[str, str]


def table(lines: Sequence[Line], order: Sequence[Row]) -> Iterator[str]:
    """Every row with a deployment, in order, and the summary for the goals."""
    judges = {(line["judge"], line["prior"], line["minutes"]) for line in lines}
    if len(judges) > 1:
        raise SystemExit(
            "these deployments differ in judge, prior or minutes, so they do not fit "
            f"into one table: {sorted(judges)}"
        )
    rows: dict[Row, list[Line]] = {row: [] for row in order}
    for line in lines:
        rows[line["group"], line["name"]].append(line)
    for judge, prior, minutes in judges:
        yield (
            f"Simulated. {len(lines)} deployments, {minutes / 60:g} h each, prior of {prior}, "
            f"judge {judge}."
        )
    for group, of in groupby((row for row in order if rows[row]), key=lambda row: row[0]):
        yield from ("", f"**{group}**", *HEAD)
        yield from (format_row(name, rows[group, name]) for _, name in of)
    yield from ("", *false_alarms(lines), "", *beneath(rows))
    yield f"\n{sum(line['took'] for line in lines) / 60:.0f} min of processor time in total"


def format_row(name: str, lines: Sequence[Line]) -> str:
    """One row."""
    count = len(lines)
    watched = [line["watch"] for line in lines if line["roll_back"] is None]
    cells = (
        f"{name} | {count}",
        labels(name, lines),
        goal(name, lines),
        times([line["roll_back"] for line in lines], f" of {count}"),
        times(watched, ""),
        " · ".join(
            percent(sum(looks), count)
            for looks in zip(*(line["healthy"] for line in lines), strict=True)
        )
        or "–",
        *(percent(alarms(lines, peer), count) for peer in PEERS),
        f"{min(line['seed'] for line in lines)}–{max(line['seed'] for line in lines)}",
        f"{sum(line['took'] for line in lines):.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def format_name(name: str) -> str:
    """The name of a row as documents write it, also for results stored with a space before %."""
    return name.replace(" %", "%")


def times(minutes: Sequence[int | None], of: str) -> str:
    """The number of deployments, and their median time."""
    found = [minute for minute in minutes if minute is not None]
    return f"{len(found)}{of}" + (f", {median(found):.0f} min" if found else "")


def alarms(lines: Sequence[Line], peer: str) -> int:
    """The number of deployments in which a peer raised an alarm."""
    return sum(line["peers"][peer] is not None for line in lines)


def percent(part: int, whole: int) -> str:
    """A rounded percentage without insignificant digits."""
    return f"{100 * part / whole:.0f}%"


def false_alarms(lines: Sequence[Line]) -> Iterator[str]:
    """False alarms over all healthy and confounded deployments, with the 95% interval of the
    share."""
    for title, groups in FALSE_ALARMS:
        of = [line for line in lines if line["group"] in groups]
        if of:
            false = sum(line["roll_back"] is not None for line in of)
            watch_only = sum(line["roll_back"] is None and line["watch"] is not None for line in of)
            low, high = wilson(false, len(of))
            yield (
                f"- {title}: {false} of {len(of)} falsely ROLL BACK ({100 * false / len(of):.2f}%, "
                f"{100 * low:.2f} to {100 * high:.2f}%), {watch_only} WATCH "
                f"({100 * watch_only / len(of):.1f}%); peers' alarms: "
                + ", ".join(f"{peer} {percent(alarms(of, peer), len(of))}" for peer in PEERS)
            )
            if all("labelled" in line for line in of):
                of_metrics = {
                    metric: sum(metric in line["labelled"] for line in of)
                    for metric in (*HARD, "errors")
                }
                shares = ", ".join(
                    f"{metric} {percent(count, len(of))}"
                    for metric, count in of_metrics.items()
                    if count
                )
                yield f"  labelled for a minute or more, before hold times: {shares or 'none'}"


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The 95% interval of a share."""
    share, z = part / whole, 1.96
    middle, half = (
        share + z * z / (2 * whole),
        z * sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole)),
    )
    return max(0.0, (middle - half) / (1 + z * z / whole)), (middle + half) / (1 + z * z / whole)


def of_fault(name: str) -> tuple[Goal | None, int | None]:
    """The fault of a row, and the percentage that this row requires; None without a fault or
    requirement."""
    for fault, found in GOALS.items():
        layout = name.removeprefix(f"{fault}, ")
        if layout != name:
            return found, found.asked[
                LAYOUTS.index(layout)
            ] if found.asked and layout in LAYOUTS else None
    return None, None


def labelled(name: str, lines: Sequence[Line]) -> list[int | None] | None:
    """The first labelled minute of each deployment: of the fault's own metric, else of any hard
    metric. None if the labels were not stored."""
    if any("labelled" not in line for line in lines):
        return None
    fault, _ = of_fault(name)
    metrics = (fault.metric,) if fault else HARD
    return [
        min(
            (line["labelled"][metric] for metric in metrics if metric in line["labelled"]),
            default=None,
        )
        for line in lines
    ]


def labels(name: str, lines: Sequence[Line]) -> str:
    """The number of labelled deployments, and their median time."""
    found = labelled(name, lines)
    return "–" if found is None else times(found, f" of {len(lines)}")


def reaches(share: int, found: int, count: int) -> bool:
    """True if the number found does not miss the required percentage by more than the sampling
    errors of both: Fisher's exact test, one-sided.

    If both detect equally well, the probability of this few labelled deployments in the row is at
    least 2.5%."""
    of_reference = round(share * REFERENCE_TRIALS / 100)
    both = found + of_reference
    ways = sum(
        comb(count, of_row) * comb(REFERENCE_TRIALS, both - of_row)
        for of_row in range(found + 1)
        if both >= of_row
    )
    return ways >= UNLIKELY * comb(count + REFERENCE_TRIALS, both)


def reaches_as_exact(share: int, found: int, count: int) -> bool:
    """True if the required percentage, taken as exact, lies within or below the 95% interval of the
    number found."""
    return wilson(found, count)[1] >= share / 100 - HALF_A_PER_CENT


def goal(name: str, lines: Sequence[Line]) -> str:
    """The required percentage of a row, and whether the row reaches it."""
    (_, share), found = of_fault(name), labelled(name, lines)
    if share is None or found is None:
        return "–" if share is None else f"{share}%"
    number = sum(minute is not None for minute in found)
    if reaches_as_exact(share, number, len(lines)):
        return f"{share}%: reached"
    return f"{share}%: {'within both errors' if reaches(share, number, len(lines)) else 'missed'}"


def beneath(rows: Mapping[Row, Sequence[Line]]) -> Iterator[str]:
    """The faults that are labelled less often than required: first those beyond the sampling errors
    of both, then those that are only excused by the reference's sampling error."""
    asked, missed, excused = 0, [], []
    for (_, name), lines in rows.items():
        (_, share), found = of_fault(name), labelled(name, lines) if lines else None
        if share is None or found is None:
            continue
        number = sum(minute is not None for minute in found)
        text = f"- {name}: labelled in {number} of {len(lines)}; {share}% required"
        asked += 1
        if not reaches(share, number, len(lines)):
            missed.append(text)
        elif not reaches_as_exact(share, number, len(lines)):
            excused.append(text)
    if asked:
        yield (
            f"{asked - len(missed)} of {asked} rows with a goal reach the goal within the "
            "sampling errors of both" + (":" if missed else ".")
        )
        yield from missed
    if excused:
        yield f"{len(excused)} of these would miss the goal if the required percentage were exact:"
        yield from excused
