"""A fold worker in its own process: `python -m tests.bench.fold_worker` folds once a second for up
to two seconds, as the fold task does."""

from __future__ import annotations

import os
import time


def main() -> None:
    """Folds until it is killed."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from dashboard.fleet.fold_service import fold_all
    from dashboard.fleet.tasks import FOLDING_SECONDS

    while True:
        began = time.monotonic()
        fold_all(seconds=FOLDING_SECONDS)
        time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))


if __name__ == "__main__":
    main()
