"""Garbage collection tuning: how often Python collects cycles and returns memory to the system.

The pipeline creates thousands of short-lived rows and reports at once.
"""

import ctypes
import gc
import os
import threading
import time

GC_THRESHOLDS = 50_000, 20, 50
"""The defaults of Python are 700, 10 and 10. With the defaults, a fold of 2,000 reports spent a
fifth of its time scanning long-lived objects."""
FULL_COLLECTION_INTERVAL_S = 60.0
"""Seconds between two full collections. A connection that timed out during setup is part of a
cycle, and its socket stays open until the next collection."""
_THREAD_NAME = "compilewatch-garbage"
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)


def tune_garbage_collection() -> None:
    """Tunes a process that has loaded its modules: loaded objects are frozen, other objects are
    collected rarely, with one full collection a minute. Forked children inherit this."""
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
    """Returns freed memory to the system.

    The C library keeps freed memory, above all between live objects. The process would stay as
    large as its largest fold or evaluation. musl has no such function, and keeps less.
    """
    if _TRIM:
        _TRIM(0)
