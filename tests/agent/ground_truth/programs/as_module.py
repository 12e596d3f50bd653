"""Started as `python -O -X utf8=1 -m as_module --twice`: the interpreter's options and the
program's arguments both arrive."""

import sys

import torch


@torch.compile(backend="eager")
def step(x: torch.Tensor) -> torch.Tensor:
    assert False, "-O takes assertions out"  # noqa: B011
    return x + 1


if not (
    sys.flags.optimize
    and sys.flags.utf8_mode
    and sys.argv[1:] == ["--twice"]
    and __name__ == "__main__"
):
    raise SystemExit(f"started wrongly: {sys.flags}, {sys.argv}")
for _ in range(2):
    step(torch.ones(4))
