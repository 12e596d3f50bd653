"""Health checks of ingest: age of the oldest waiting report, quarantined reports, and errors of the
committer."""

from dashboard.common.health import Check, format_age
from dashboard.ingest.group_commit import COMMITTER, MAX_FAILURES_IN_A_ROW
from dashboard.ingest.selectors import list_quarantine_reasons, read_inbox_age

MAX_INBOX_AGE_S = 60.0
"""Seconds that a report may wait. A healthy worker folds it within three."""


def committer_check() -> Check:
    """Errors in a row of the thread that commits reports in this process. After a few errors, the
    process accepts no reports."""
    failures = COMMITTER.failures_in_a_row
    if not failures:
        return Check(
            "committer",
            True,
            0,
            MAX_FAILURES_IN_A_ROW,
            "errors in a row",
            "This process commits reports.",
        )
    said = (
        f"The thread that commits reports failed {failures} times in a row; the log of this "
        "process has the errors."
    )
    return Check(
        "committer",
        False,
        failures,
        MAX_FAILURES_IN_A_ROW,
        "errors in a row",
        said,
        serves=failures < MAX_FAILURES_IN_A_ROW,
    )


def inbox_check() -> Check:
    """Age of the oldest report that waits to be folded."""
    age = read_inbox_age()
    if age > MAX_INBOX_AGE_S:
        return Check(
            "inbox",
            False,
            age,
            MAX_INBOX_AGE_S,
            "s",
            f"The oldest report has waited {format_age(age)} to be folded: pages are behind by "
            "that time.",
        )
    return Check("inbox", True, age, MAX_INBOX_AGE_S, "s", "Reports are folded on arrival.")


def quarantine_check() -> Check:
    """Number of reports that could not be folded, and the most frequent reason. For the operator
    only, since the text may belong to any project."""
    reasons = list_quarantine_reasons()
    count = sum(number for _, number in reasons)
    if not count:
        return Check("quarantine", True, 0, 0, "reports", "No report is quarantined.")
    error, most = reasons[0]
    what = "1 report is" if count == 1 else f"{count:,} reports are"
    said = (
        f"{what} quarantined. Most frequent reason ({most:,}): "
        f"{' '.join(error.split())[:200]}. Fix the cause, then run manage.py refold."
    )
    return Check("quarantine", False, count, 0, "reports", said)
