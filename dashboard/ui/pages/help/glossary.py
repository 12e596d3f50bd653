"""Glossary: one entry for each term, shown next to column headings and on its own page."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.vocabulary.metrics import METRICS


@dataclass(frozen=True)
class GlossaryEntry:
    """A term and its definition."""

    title: str
    text: str


GLOSSARY: dict[str, GlossaryEntry] = {
    "verdict": GlossaryEntry(
        "Verdict",
        "ROLL BACK: the version causes a regression that affects users. WATCH: a change "
        "that does not affect users, or that is not confirmed yet. NOT ENOUGH DATA: too "
        "little traffic to decide. HEALTHY: changes larger than the stated limit are ruled "
        "out.",
    ),
    "live_versions": GlossaryEntry(
        "Live versions",
        "Versions with current traffic, each with its share of the calls of the last 15 min.",
    ),
    "p50": GlossaryEntry(
        "p50",
        "Half of the calls of the region were faster. Computed from merged sketches of the "
        "instances (error up to 1.1%). Three places show estimates from means of quantiles, "
        "and are marked: the sparkline of the Fleet table, the strips of the Instances page "
        "and the 28-day comparison.",
    ),
    "fleet_latency": GlossaryEntry(
        "Latency",
        "Change of the region with the most call time, and below both values. For an evaluated "
        "version, the change and the values come from its verdict, in the matched minutes. Other "
        "changes compare the last 15 min of both versions.",
    ),
    "p95": GlossaryEntry(
        "p95", "95 of 100 calls were faster. Computed from the same sketches as p50."
    ),
    "p99": GlossaryEntry(
        "p99",
        "99 of 100 calls were faster. Uncertain below a few hundred calls per interval: the "
        "shaded band shows the sampling error of the calls, without differences between "
        "instances.",
    ),
    "compiled": GlossaryEntry(
        "Compiled calls",
        "Share of calls that ran compiled, among calls with a known execution mode. A silent "
        "fallback to eager lowers this share.",
    ),
    "eager": GlossaryEntry(
        METRICS["eager"].title,
        "Share of calls that ran eager, for each cause: a recompile limit, a stance, a skip, "
        "disabled compilation, a failed compilation, or no graph to run. Only calls with a "
        "known execution mode count; partly compiled calls are not eager.",
    ),
    "cache": GlossaryEntry(
        METRICS["cache_hit_rate"].title,
        "Share of compile time that a cache saved. Weighted by seconds, not by count: one "
        "large miss costs more than ten small misses.",
    ),
    "cold_start": GlossaryEntry(
        METRICS["cold_start"].title,
        "Time from process start to the first steady call. Fleet page: median of the "
        "instances that report now. Other pages: median of all known starts of the version.",
    ),
    "gpu_memory": GlossaryEntry(
        METRICS["gpu_memory"].title,
        "Highest value of a single instance in the range. Without a GPU: host memory.",
    ),
    "host_memory": GlossaryEntry(
        METRICS["host_memory"].title,
        "Highest resident memory of a single instance in the range.",
    ),
    "instances": GlossaryEntry(
        "Instances",
        "Processes with calls or compilations that reported within the last 30 min, by "
        "state. Silent: no report for 3 min, and no exit reported. Starting and ended "
        "processes and helpers of a job, such as data workers, are not counted.",
    ),
    "recompiles": GlossaryEntry(
        METRICS["recompiles"].title,
        "Compilations of a frame after its first. The evaluated rate, per hour and instance, "
        "excludes the first 20 min of an instance; excluded recompiles are counted "
        "separately. Each recompile stalls the calls that wait for it.",
    ),
    "compile": GlossaryEntry(
        METRICS["compile_time"].title,
        "Seconds of compilation in the interval, averaged over the instances that reported.",
    ),
    "throughput": GlossaryEntry(
        METRICS["throughput"].title,
        "Items per second of call time, if the job reports the number of items per call. For "
        "an engine that is monitored from outside: items per second of wall time.",
    ),
    "traffic": GlossaryEntry(
        METRICS["traffic"].title,
        "Calls per second and instance. Traffic is shown for context only and is not evaluated.",
    ),
    "errors": GlossaryEntry(
        METRICS["errors"].title,
        "Share of calls that raised an exception, among calls with a known outcome.",
    ),
    "alerts": GlossaryEntry(
        "Alerts", "Number of unresolved alerts, and the age of the oldest alert."
    ),
    "calls_now": GlossaryEntry(
        "Calls now",
        "Share of the environment's calls in the latest minutes of the range. Below: total "
        "calls and instance-hours.",
    ),
    "matched": GlossaryEntry(
        "Window",
        "Time range of both values. Matched: minutes in which both versions ran in the same "
        "cohort. Last: the latest minutes of each version. At start: once per instance.",
    ),
    "strata": GlossaryEntry(
        "Cohorts agreeing",
        "Number of cohorts (GPU type, mode and runtime) with a change in the same direction.",
    ),
    "smallest": GlossaryEntry(
        "Smallest effect",
        "Changes below this size are never reported as a regression. To change the size, "
        "see Settings, Detection.",
    ),
    "interval": GlossaryEntry(
        "Interval",
        "95% confidence interval: contains the true change in 95 of 100 such comparisons, if "
        "the instances are a representative sample.",
    ),
}


def get_entry(key: str) -> GlossaryEntry:
    """Returns the entry of a term. An unknown term is an error of the calling page."""
    return GLOSSARY[key]
