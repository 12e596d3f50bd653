"""A job that compares a golden batch before it serves; `wrong` compiles with a backend that loses
an addition."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import compilewatch
import torch

from tests.agent import golden_models

VERSION, FAULT, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])

compilewatch.init(model="ranker", version=VERSION, interval=1.0)
torch.manual_seed(3)
module, batch = golden_models.Perceptron(), torch.randn(16, 48)
model = torch.compile(
    module, backend=golden_models.drops_an_add if FAULT == "wrong" else "aot_eager"
)
found = compilewatch.golden("batch of 16", model, (batch,))
print(found.state, flush=True)
model = compilewatch.watch(model, name="forward")
until = time.monotonic() + SECONDS
while time.monotonic() < until:
    model(batch)
    time.sleep(0.05)
