"""Serving example: scores batches at a steady rate with a compiled model, watched by compilewatch.

COMPILEWATCH_ENDPOINT=http://127.0.0.1:8000 COMPILEWATCH_API_KEY=... \
    python serve.py --version 2 --fault shapes --minutes 30
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable

import compilewatch
import torch
from options import options_read, paced, surroundings
from ranker import BATCHES, LONGEST, batches, build, compile_options

WARM_UP_ROUNDS = 3


def serve(options: argparse.Namespace) -> None:
    model = compilewatch.compile(build(options).eval(), **compile_options(options))
    warm_up(model, options.device)
    compilewatch.ready()
    print(f"serving version {options.version} of {options.model}", flush=True)
    requests = batches(options)
    for _ in paced(options):
        tokens = next(requests)
        with compilewatch.region("request"):
            model(tokens.to(options.device)).tolist()


def warm_up(model: Callable[[torch.Tensor], torch.Tensor], device: str) -> None:
    for _ in range(WARM_UP_ROUNDS):
        for size in BATCHES:
            model(torch.ones(size, LONGEST, dtype=torch.int64, device=device))


def main() -> None:
    options = options_read(__doc__, model="ranker", rate=20.0)
    compilewatch.init(model=options.model, version=options.version)
    with contextlib.suppress(KeyboardInterrupt), surroundings(options), torch.inference_mode():
        serve(options)
    compilewatch.shutdown()


if __name__ == "__main__":
    main()
