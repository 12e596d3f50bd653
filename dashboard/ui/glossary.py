"""What the numbers mean: one entry a word, shown beside the heads of columns and on a page of their
own."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.vocabulary.metrics import METRICS


@dataclass(frozen=True)
class GlossaryEntry:
    """A word and what is counted under it."""

    title: str
    text: str


GLOSSARY: dict[str, GlossaryEntry] = {
    "verdict": GlossaryEntry(
        "Verdict",
        "ROLL BACK: users are affected and the cause is the version. WATCH: something "
        "changed that users do not feel, or that is not sure "
        "yet. NOT ENOUGH DATA: too little was seen to say either. HEALTHY: nothing worse "
        "than the size beside it would have stayed hidden.",
    ),
    "live_versions": GlossaryEntry(
        "Live versions",
        "Versions with traffic now, and the share of the calls of the last 15 min that "
        "each of them took.",
    ),
    "p50": GlossaryEntry(
        "p50",
        "Half of the calls of the region were faster. Merged from the sketches of the "
        "instances, exact to "
        "1.1 %. Three estimates use means of "
        "quantiles, and their places name it: the line of the Fleet table, the strips of "
        "Instances and the comparison of 28 days.",
    ),
    "fleet_latency": GlossaryEntry(
        "Latency",
        "Values of the last 15 min, of the region whose calls took most time. A change of "
        "a judged version "
        "is the judge's: next to it are both "
        "values in matched minutes and their number. Any other change compares the last 15 "
        "min of both "
        "versions. The line is an estimate: each "
        "point is the mean of the p50 or p99 of its minutes, weighted by calls.",
    ),
    "p95": GlossaryEntry("p95", "95 of 100 calls were faster; from the same sketches as p50."),
    "p99": GlossaryEntry(
        "p99",
        "99 of 100 calls were faster. Under some hundred calls in an interval it is "
        "uncertain: the shade "
        "shows the sampling error of the calls, "
        "without the differences between instances.",
    ),
    "compiled": GlossaryEntry(
        "Compiled calls",
        "Share of the calls that ran compiled, among the calls of which the agent knows. "
        "Eager without anybody telling shows here.",
    ),
    "eager": GlossaryEntry(
        METRICS["eager"].title,
        "Share of the calls that ran eager for each cause: a recompile limit, a stance, a "
        "skip, disabled compilation, "
        "a failed compilation, or no graph to run. Among the calls known; partly compiled "
        "calls are not eager.",
    ),
    "cache": GlossaryEntry(
        "Cache hit",
        "Share of compile seconds that a cache saved, by seconds and not by count: one "
        "large miss costs more than ten small.",
    ),
    "cold_start": GlossaryEntry(
        METRICS["cold_start"].title,
        "From the start of the process to its first steady call. Fleet: the median of the "
        "instances that "
        "report now. Other pages: of all known "
        "starts of the version.",
    ),
    "gpu_memory": GlossaryEntry(
        METRICS["gpu_memory"].title,
        "The highest that any one instance reported in the range. Without a GPU: host memory.",
    ),
    "host_memory": GlossaryEntry(
        METRICS["host_memory"].title,
        "The highest resident memory that any one instance reported in the range.",
    ),
    "instances": GlossaryEntry(
        "Instances",
        "Processes that called or compiled something and reported within the last 30 min, "
        "by what they do now. Silent: no report for 3 min "
        "and no end reported. A process that starts, ended or only helps its job, such as "
        "a data worker, is not counted.",
    ),
    "recompiles": GlossaryEntry(
        METRICS["recompiles"].title,
        "Compilations after the first of a frame. The judged rate, per hour and instance, "
        "leaves out the "
        "first 20 min of an instance; the excluded "
        "ones are counted next to it. Each recompile stalls the calls that wait for it.",
    ),
    "compile": GlossaryEntry(
        METRICS["compile_time"].title,
        "Seconds that an instance spent compiling in the interval, on average over the "
        "instances that reported.",
    ),
    "throughput": GlossaryEntry(
        METRICS["throughput"].title,
        "Items per second of call time, where the job says how many items a call handles; "
        "of an engine that is read from outside, "
        "per second of wall time.",
    ),
    "traffic": GlossaryEntry(
        "Traffic",
        "Calls per second and instance. Less traffic is no fault of a version; it is shown "
        "beside what is.",
    ),
    "errors": GlossaryEntry(
        METRICS["errors"].title, "Share of the calls that raised, among those of which it is known."
    ),
    "alerts": GlossaryEntry("Alerts", "Alerts that are not resolved, and the age of the oldest."),
    "calls_now": GlossaryEntry(
        "Calls now",
        "Share of the environment's calls in the newest minutes of the range; below it all "
        "calls and instance-hours.",
    ),
    "matched": GlossaryEntry(
        "Window",
        "Of which time both values are. Matched: minutes in which both versions ran in the "
        "same stratum. "
        "Last: the newest minutes of both. At "
        "start: once an instance.",
    ),
    "strata": GlossaryEntry(
        "Strata agreeing",
        "In how many GPU types, modes and runtimes the change points the same way.",
    ),
    "smallest": GlossaryEntry(
        "Smallest effect",
        "A change below it is too small to matter and is never called a regression. "
        "Settings, Judging changes it.",
    ),
    "interval": GlossaryEntry(
        "Interval",
        "Where the true change lies, in 95 of 100 such comparisons, if the instances are a "
        "fair sample.",
    ),
}


def get_entry(key: str) -> GlossaryEntry:
    """The entry of a word; a word that nobody explained is an error of the page that asks for
    it."""
    return GLOSSARY[key]
