"""Readiness endpoint: `/readyz` reports whether this process and the pipeline behind it work.

The endpoint answers in time even if the database does not answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import Lock, Thread
from typing import Any

import msgspec
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.common.health import Check, database_check, migrations_check, workers_check
from dashboard.common.http import json_response
from dashboard.ingest.health import committer_check, inbox_check
from dashboard.regressions.health import judge_check

logger = logging.getLogger(__name__)

CHECK_TIMEOUT_S = 2.5
CHECKS: dict[str, Callable[[], Check]] = {
    "database": database_check,
    "migrations": migrations_check,
    "inbox": inbox_check,
    "judge": judge_check,
    "workers": workers_check,
}
REQUIRED_CHECKS = ("database", "migrations")
NO_ANSWER_TEXT = "the database does not respond"


class CheckRun:
    """One run of all checks on a thread of its own: a slow database delays the thread, not the
    request."""

    def __init__(self) -> None:
        self.found: dict[str, Check] = {}
        self._thread = Thread(target=self._run, name="compilewatch-readyz", daemon=True)
        self._thread.start()

    @property
    def under_way(self) -> bool:
        """True while the checks still run."""
        return self._thread.is_alive()

    def wait(self) -> dict[str, Check]:
        """The checks that finish within the timeout, and an unknown check for each of the
        others."""
        self._thread.join(CHECK_TIMEOUT_S)
        return {name: self.found.get(name) or build_unknown_check(name) for name in CHECKS}

    def _run(self) -> None:
        try:
            for name, check in CHECKS.items():
                self.found[name] = check()
        except DatabaseError as error:
            logger.warning("readyz: the database failed: %s", str(error).strip())
        except Exception:
            logger.exception("readyz: the check %s failed with an error", name)
        finally:
            connection.close()


_run_lock = Lock()
_current_run: CheckRun | None = None


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answers 503 while this process cannot work.

    With `?line`, meant for alarms, also while the pipeline behind the process is blocked.
    """
    checks = [committer_check(), *_start_or_join_run().wait().values()]
    serves, well = all(check.serves for check in checks), all(check.ok for check in checks)
    refused = not serves or ("line" in request.GET and not well)
    response = json_response(
        _body(checks, "ready" if well else "degraded" if serves else "not ready"),
        503 if refused else 200,
    )
    if refused:
        response["Retry-After"] = "5"
    return response


def build_unknown_check(name: str, why: str = NO_ANSWER_TEXT) -> Check:
    """The check result for a database that does not answer."""
    return Check(
        name, False, None, None, "", f"Unknown: {why}.", serves=name not in REQUIRED_CHECKS
    )


def _start_or_join_run() -> CheckRun:
    """Starts a run of the checks, or joins the current one.

    A database that hangs thus blocks one thread, not one thread per request.
    """
    global _current_run
    with _run_lock:
        if _current_run is None or not _current_run.under_way:
            _current_run = CheckRun()
        return _current_run


def _body(checks: Iterable[Check], status: str) -> bytes:
    body: dict[str, Any] = {"cw": 1, "status": status}
    body["checks"] = {
        check.name: {
            "ok": check.ok,
            "value": check.value,
            "limit": check.limit,
            "unit": check.unit,
            "sentence": check.sentence,
        }
        for check in checks
    }
    return msgspec.json.encode(body)
