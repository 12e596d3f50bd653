"""Fold worker in a process of its own: `python -m tests.dashboard.fleet.folder CRASH_POINT BATCH`,
where the crash point may be empty."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.architecture.tree import REPOSITORY


def folder_start(*, crash: str = "", batch: int = 50) -> subprocess.Popen[str]:
    """Starts a worker on the database of this test run."""
    from django.db import connection

    database = connection.settings_dict
    if connection.vendor == "postgresql":
        url = f"postgresql://{database['USER']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    else:
        url = f"sqlite://{database['NAME']}"
    environment = {
        **os.environ,
        "COMPILEWATCH_DATABASE_URL": url,
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'agents'}",
    }
    command = [sys.executable, "-m", "tests.dashboard.fleet.folder", crash, str(batch)]
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def folder_run(*, crash: str = "", batch: int = 50) -> int:
    """Runs a worker to its end; returns its exit status, negative for the signal that killed it."""
    worker = folder_start(crash=crash, batch=batch)
    out, err = worker.communicate(timeout=120)
    assert worker.returncode in (0, -9), out + err
    return worker.returncode


def main() -> None:
    """Folds the waiting reports and prints their number."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from django.conf import settings

    from dashboard.fleet import fold_attempts
    from dashboard.fleet.fold_service import fold_all
    from tests.dashboard.crashes import Nth

    crash, batch = sys.argv[1:]
    settings.CRASH = Nth(crash)
    fold_attempts.batch_size = lambda: int(batch)
    print(fold_all())


if __name__ == "__main__":
    main()
