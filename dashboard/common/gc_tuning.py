"""How often Python looks for garbage in circles, and gives room back: thousands of rows and reports
are made at once and are gone soon."""

import ctypes
import gc
import os
import threading
import time

GC_THRESHOLDS = 50_000, 20, 50
"""Python's own are 700, 10 and 10. With those a fold of 2,000 reports spent a fifth of its time
looking through what lives for long."""
FULL_COLLECTION_INTERVAL_S = 60.0
"""Between two looks through everything that is not frozen: a connection that timed out while it was
made lies in a circle, and its socket stays open until then."""
_THREAD_NAME = "compilewatch-garbage"
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)


def tune_garbage_collection() -> None:
    """Of a process that has loaded what it needs: that is never looked through again, the rest
    seldom, but once a minute. Its forked children do likewise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    if all(thread.name != _THREAD_NAME for thread in threading.enumerate()):
        _start_collector()
        os.register_at_fork(after_in_child=_start_collector)


def _start_collector() -> None:
    threading.Thread(target=_collect_periodically, name=_THREAD_NAME, daemon=True).start()


def _collect_periodically() -> None:
    while True:
        time.sleep(FULL_COLLECTION_INTERVAL_S)
        gc.collect()
        release_free_memory()


def release_free_memory() -> None:
    """The C library keeps what was freed, most of all between what is still held: a process would
    stay as large as its largest fold or judgement. musl has no such function, and keeps less."""
    if _TRIM:
        _TRIM(0)
