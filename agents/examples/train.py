"""Training example: fits the ranker to random scores with a compiled, watched model.

COMPILEWATCH_ENDPOINT=http://127.0.0.1:8000 COMPILEWATCH_API_KEY=... \
    python train.py --version 2 --fault graph-break --minutes 30
"""

from __future__ import annotations

import argparse
import contextlib

import compilewatch
import torch
from options import options_read, paced, surroundings
from ranker import batches, build, compile_options
from torch.nn import functional

WARM_UP_STEPS = 20


def train(options: argparse.Namespace) -> None:
    plain = build(options)
    model = compilewatch.compile(plain, **compile_options(options))
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-3)
    examples = batches(options)
    for step in paced(options):
        tokens = next(examples).to(options.device)
        wanted = (tokens % 7 == 0).float().mean(1)
        with compilewatch.region("train_step"):
            loss = functional.mse_loss(model(tokens), wanted)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if step == WARM_UP_STEPS:
            compilewatch.ready()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


def main() -> None:
    options = options_read(__doc__, model="ranker-training", rate=10.0)
    compilewatch.init(model=options.model, version=options.version, kind="training")
    with contextlib.suppress(KeyboardInterrupt), surroundings(options):
        train(options)
    compilewatch.shutdown()


if __name__ == "__main__":
    main()
