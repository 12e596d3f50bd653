"""Command line of both examples, their pace, and the fault in the environment of a version."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator

FAULTS = ("none", "graph-break", "shapes", "slow", "cold-cache")


def options_read(purpose: str, *, model: str, rate: float) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--model", default=model, help="name of the watched model (%(default)s)")
    parser.add_argument("--version", default="1", help="version that is reported (%(default)s)")
    parser.add_argument(
        "--fault",
        choices=FAULTS,
        default="none",
        help="what makes this version worse (%(default)s)",
    )
    parser.add_argument(
        "--mode",
        choices=("default", "reduce-overhead"),
        default="default",
        help="torch.compile mode (%(default)s)",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="where the model runs (%(default)s)",
    )
    parser.add_argument("--backend", default="inductor", help="torch.compile backend (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long to run")
    parser.add_argument(
        "--minutes",
        type=float,
        default=0.0,
        help="added to --seconds; without either it runs until interrupted",
    )
    parser.add_argument(
        "--rate", type=float, default=rate, help="requests or steps a second, at most (%(default)s)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="CPU threads torch may use; 0 leaves it to torch (%(default)s)",
    )
    parser.add_argument("--width", type=int, default=128, help="width of the model (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs (%(default)s)")
    return parser.parse_args()


@contextlib.contextmanager
def surroundings(options: argparse.Namespace) -> Iterator[None]:
    """Sets a new cache folder for the fault `cold-cache`, without kernels of earlier versions."""
    if options.fault != "cold-cache":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="cold-cache-", ignore_cleanup_errors=True) as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        yield


def paced(options: argparse.Namespace) -> Iterator[int]:
    """Counts turns at the set rate until the time is over.

    A late turn starts at once, and later turns do not catch up."""
    seconds = options.seconds + 60 * options.minutes
    start = due = time.monotonic()
    turn = 0
    while not seconds or time.monotonic() - start < seconds:
        yield turn
        turn += 1
        due = max(due + 1 / options.rate, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
