"""The fault list by row, with the test files of each row: short form in every test run, full form
by `make faults`."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A fault, and its test files below `tests`."""

    fault: str
    files: tuple[str, ...]
    goal: int = 0
    """Number of tests that must pass, over any number of interrupted runs; 0: all existing
    tests."""


ROUNDS = 1000
"""Rounds of random faults in a full run."""

BENCHMARKS = "bench/"
"""Prefix of the files that are benchmarks, not tests."""

LEFT_OUT = {"38": "three days under random faults: no run takes that long"}
"""Rows of the list without a test, with the reason."""

BROKEN = "faults/test_a_broken_connection_counts_nothing_twice.py"
ENDS = "faults/test_a_job_ends_promptly_with_any_network_failure.py"
KILLED = "faults/test_killed_jobs_lose_one_open_window_at_most.py"
QUICK = "faults/test_a_failure_of_redis_only_slows_the_pipeline.py"
STILL = "faults/test_a_database_that_does_not_answer_is_a_503.py"

ROWS = {
    "1": Row("SIGKILL at random, with a spool", (KILLED, "faults/test_merged_windows_of_a_killed_job_count_once.py")),
    "2": Row("SIGKILL at random, without a spool", (KILLED,)),
    "3": Row("SIGTERM while the main thread is in C", (ENDS,)),
    "4": Row("torchrun: one rank fails, the others get TERM, then KILL", ("faults/test_ranks_that_fall_together_stay_apart.py",)),
    "5": Row("a fork in each state of the agent's thread", ("faults/test_a_fork_at_any_moment_is_safe.py",)),
    "6": Row("a pool of 64, three generations, every way to start a child", ("agent/identity/test_children_of_every_kind_report_once.py",)),
    "7": Row("an exit while the dashboard is dead, silent or slow", (ENDS,)),
    "8": Row("the end of an interpreter, on each Python", ("agent/runtime/test_a_process_ends_as_it_would_without_us.py",)),
    "9": Row("finalizers, signal and logging handlers that record", (
        "agent/instrument/test_no_argument_reaches_the_job_as_an_exception.py",
    )),
    "10": Row("OpenTelemetry, ddtrace and gevent in the same process", ("agent/instrument/test_tracers_see_nothing_of_the_agent.py",)),
    "11": Row("an outage of 10 s, 5 min, 1 h, 24 h", ("faults/test_an_outage_of_any_length_loses_no_count.py",)),
    "12": Row("blackhole, half-open, a byte at a time", (BROKEN, ENDS, "faults/test_the_network_slows_no_call_down.py")),
    "13": Row("a response dropped after the request was forwarded", (BROKEN,)),
    "14": Row("replayed five times, reordered by 64, an hour late", (BROKEN, "faults/test_order_and_repetition_change_nothing.py")),
    "15": Row("429 and 503 with any Retry-After", (BROKEN, "agent/runtime/test_waits_are_fair.py")),
    "16": Row("every status with every body", (BROKEN, "agent/export/http/test_only_our_own_answer_counts.py")),
    "17": Row("a response that is truncated, wrong or huge", (BROKEN, "agent/export/http/test_a_request_is_bounded.py")),
    "18": Row("a host name that does not exist, or a DNS lookup that hangs", (ENDS,)),
    "19": Row("wrong clocks, or clocks set in mid-window", (
        "agent/recording/test_a_clock_that_is_set_changes_no_duration.py",
        "faults/test_a_clock_that_is_wrong_moves_no_minute.py",
        "dashboard/fleet/test_a_window_belongs_to_the_minute_of_its_end.py",
    )),
    "20": Row("a web worker killed at any moment and at each crash point", (
        "faults/test_random_faults_lose_and_double_nothing.py",
        "dashboard/ingest/test_a_killed_server_loses_and_doubles_nothing.py",
    )),
    "21": Row("one worker or all workers killed, or without memory", ("faults/test_a_killed_worker_catches_up.py",)),
    "22": Row("a frozen scheduler, and three at once", (QUICK,)),
    "23": Row("Redis killed, emptied, full or halted", (QUICK,)),
    "24": Row("a worker that no longer takes tasks", (QUICK,)),
    "25": Row("every process of PostgreSQL killed", ("faults/test_a_killed_postgresql_is_waited_for.py",)),
    "26": Row("a lagging standby takes over", ("faults/test_a_standby_that_lags_gets_its_tail_again.py",)),
    "27": Row("a dashboard restored from an older copy", (
        "faults/test_a_restored_dashboard_gets_its_tail_again.py",
        "faults/test_a_backup_by_the_guide_can_be_restored.py",
    )),
    "28": Row("a full disk of database, log or spool", ("faults/test_a_full_disk_is_a_503.py",)),
    "29": Row("a sync that fails", ("faults/test_a_disk_that_keeps_nothing_ends_the_server.py",)),
    "30": Row("a database that is locked, halted or stopped", (STILL,)),
    "31": Row("no database connection left", (STILL,)),
    "32": Row("thousands of agents return at once", ("bench/bench_reconnect.py",)),
    "33": Row("one project floods", ("faults/test_a_flood_is_refused_alone.py", "bench/bench_flood.py")),
    "34": Row("a report that cannot be folded", (
        "faults/test_a_poison_report_delays_no_other_report.py",
        "dashboard/fleet/test_a_poison_report_is_quarantined.py",
    )),
    "35": Row("a channel that is slow, refuses, redirects or drops responses", (
        "dashboard/alerts/test_deliveries_are_tried_again.py",
        "dashboard/alerts/test_crashes_and_crowds.py",
        "dashboard/common/test_outbound_bad_servers.py",
    )),
    "36": Row("a deploy under load, agents and servers of two releases", (
        "faults/test_a_rolling_deploy_loses_nothing.py",
        "dashboard/common/test_an_earlier_release_may_go_on_writing.py",
    )),
    "37": Row("a spool that is corrupted or belongs to another user", (
        "faults/test_a_damaged_spool_harms_no_job.py",
        "agent/export/spool/test_a_damaged_file_loses_only_its_damaged_records.py",
        "agent/export/spool/test_a_kill_on_a_disk_that_refuses_loses_what_it_refused.py",
        "agent/runtime/test_files_are_this_users_alone.py",
    )),
    "ledger": Row(
        "random faults against a whole dashboard, each round with a ledger",
        ("faults/test_random_faults_lose_and_double_nothing.py", "faults/test_the_ledger_finds_what_an_agent_loses.py"),
        goal=ROUNDS,
    ),
}  # fmt: skip
