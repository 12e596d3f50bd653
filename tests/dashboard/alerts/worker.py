"""A worker in a process of its own, on the database of the test; told to, it dies at a point as if by kill -9.

    python -m tests.dashboard.alerts.worker POINT SECONDS

POINT is `opening`, `grouping`, `merging`, `leased`, `sent`, `marking`, `marked` or `never`; SECONDS is what its clock says."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import django


def die(*_: Any, **__: Any) -> NoReturn:
    os._exit(9)


def main(point: str, seconds: float) -> None:
    django.setup()
    from dashboard.alerts.services import gather, group, outbox, sweep, transition
    from dashboard.common import clock

    clock.unix = lambda: seconds
    mark = outbox.delivery_mark
    if point == "opening":
        vars(transition)["messages_owe"] = die
    elif point == "grouping":
        vars(group)["event_add"] = die
    elif point == "merging":
        write = vars(gather)["digests_write"]
        vars(gather)["digests_write"] = lambda **given: (write(**given), die())
    elif point == "leased":
        outbox.delivery_try = die
    elif point == "sent":
        outbox.delivery_mark = die
    elif point == "marking":
        outbox._event = die
    elif point == "marked":
        outbox.delivery_mark = lambda claim, result: (mark(claim, result), die())[0]
    sweep.alerts_sweep()
    group.groups_form()
    outbox.deliveries_send()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
