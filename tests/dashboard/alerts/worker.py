"""A worker in its own process, on the test database; on request it dies at a given point, as if by
kill -9.

    python -m tests.dashboard.alerts.worker POINT SECONDS

POINT is `opening`, `grouping`, `merging`, `leased`, `sent`, `marking`, `marked` or `never`; SECONDS
is the time of its clock."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import django


def die(*_: Any, **__: Any) -> NoReturn:
    os._exit(9)


def main(point: str, seconds: float) -> None:
    django.setup()
    from dashboard.alerts.services import correlate, deliver, merge_groups, sync, transitions
    from dashboard.common import clock

    clock.unix = lambda: seconds
    mark = deliver.delivery_mark
    if point == "opening":
        vars(transitions)["enqueue_messages"] = die
    elif point == "grouping":
        vars(correlate)["event_add"] = die
    elif point == "merging":
        write = vars(merge_groups)["digests_write"]
        vars(merge_groups)["digests_write"] = lambda **given: (write(**given), die())
    elif point == "leased":
        deliver.delivery_try = die
    elif point == "sent":
        deliver.delivery_mark = die
    elif point == "marking":
        deliver._event = die
    elif point == "marked":
        deliver.delivery_mark = lambda claim, result: (mark(claim, result), die())[0]
    sync.alerts_sync()
    correlate.alerts_correlate()
    deliver.deliveries_send()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
