"""How often Python looks for garbage in circles: thousands of rows and reports are made at once and are gone soon, without circles."""

import gc

THRESHOLDS = 50_000, 20, 50
"""Python's own are 700, 10 and 10. With those a fold of 2,000 reports spent a fifth of its time looking through what lives for long."""


def garbage_seldom() -> None:
    """Of a process that has loaded what it needs: that is never looked through again, the rest seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
