"""A Celery worker whose watchdog waits for seconds instead of a minute: `python -m
tests.faults.quick_worker`."""

from __future__ import annotations

import sys


def main() -> None:
    """Becomes the worker."""
    from celery.__main__ import main as celery

    from dashboard.celery import app
    from tests.faults.size import sized

    app.loader.import_default_modules()
    from dashboard import scheduler

    scheduler.STUCK_AFTER_S = float(sized(15, 60))
    sys.argv = [
        "celery",
        "-A",
        "dashboard.celery",
        "--quiet",
        "worker",
        "--concurrency",
        "1",
        "--loglevel",
        "WARNING",
    ]
    celery()


if __name__ == "__main__":
    main()
