"""A golden batch after a warm-up, as a deployment that already serves runs it: healthy, and with a
wrong kernel in inductor's graph."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compilewatch
import torch
from compilewatch import agent
from compilewatch.numerics.golden import Golden
from torch import Tensor, fx
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass

from tests.agent.golden_real.faults import FAULTS, Planted
from tests.agent.golden_real.models import Made, made

aten = torch.ops.aten
CALLS = 3
HIDDEN, FINDING = "golden_hidden_by_tf32", "passed with a finding"
"""A fault that TF32 hides in a compiler other than inductor becomes a finding, and fails no
batch."""
PRODUCTS = (
    aten.addmm.default,
    aten.mm.default,
    aten.bmm.default,
    aten._int_mm.default,
    aten.convolution.default,
)
WRONG_MASK = "a wrong mask in inductor's graph"
UNSEEN = ("another epsilon", "sums in half precision")
"""Faults that are too small to change the largest of some scores, or that the reduced precision of
a GPU's convolutions hides."""


class WrongMask(CustomGraphPass):
    """The last matrix product or convolution skips the end of each row, like a kernel with a wrong
    mask; in a graph without one, as of a fused encoder layer, the last result does. The fault is in
    each graph, because a model may serve from a later graph than the first."""

    done = False

    def __call__(self, graph: fx.Graph) -> None:
        results = [
            node
            for node in graph.nodes
            if node.op == "call_function" and isinstance(node.meta.get("val"), Tensor)
        ]
        results = [node for node in results if node.target in PRODUCTS] or [
            node for node in results if node.meta["val"].dim() > 1
        ]
        if not results:
            return
        node = results[-1]
        value, axis = node.meta["val"], 1 if node.target is aten.convolution.default else -1
        keep = value.shape[axis] - max(1, value.shape[axis] // 4)
        with graph.inserting_after(node):
            part = graph.call_function(aten.slice.Tensor, (node, axis, 0, keep))
        with graph.inserting_after(part):
            shape = list(value.shape)
            shape[axis] -= keep
            rest = graph.call_function(
                aten.full.default, (shape, 0.0), {"dtype": value.dtype, "device": value.device}
            )
        with graph.inserting_after(rest):
            whole = graph.call_function(aten.cat.default, ([part, rest], axis))
        part.meta["val"], rest.meta["val"] = value.narrow(axis, 0, keep), value.new_zeros(shape)
        whole.meta["val"] = torch.empty_like(value)
        node.replace_all_uses_with(whole, delete_user_cb=lambda user: user is not part)
        self.done = True

    def uuid(self) -> Any:
        """None: no cache may hold a graph with the fault."""
        return None


def warmed(name: str, compiled: Any, batch: Any, **asked: Any) -> Golden:
    """The result of the golden batch of a callable that has already served the same batch several
    times."""
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder) / "reports.jsonl"
        assert agent.init(model=name, version="1", endpoint=f"file:{reports}", spool=folder)
        try:
            for _ in range(CALLS):
                compiled(**batch) if isinstance(batch, dict) else compiled(*batch)
            compilewatch.ready()
            found = compilewatch.golden(name, compiled, batch, **asked)
        finally:
            agent.shutdown()
        text = next((one for one in _findings(reports) if one.startswith(f"{name}: ")), "")
        return found._replace(state=FINDING, text=text) if text else found


def _findings(reports: Path) -> list[str]:
    requests = [json.loads(line) for line in reports.read_text().splitlines()]
    windows = [report for request in requests for report in request["reports"]]
    return [
        one["text"]
        for window in windows
        for one in window.get("findings", ())
        if one["kind"] == HIDDEN
    ]


def healthy(
    name: str,
    make: Callable[[], Made],
    device: str,
    dtype: torch.dtype,
    grads: bool,
    how: dict[str, Any],
) -> Golden:
    """A model with a correct compiler; with gradients the warm-up runs like training."""
    torch._dynamo.reset()
    module, batch = made(make, dtype, device)
    with torch.set_grad_enabled(grads):
        return warmed(name, compilewatch.compile(module, name=name, **how), batch, grads=grads)


def faulty(name: str, make: Callable[[], Made], device: str, fault: str) -> Golden | None:
    """A model with one wrong kernel; None if the model has no place for the kernel."""
    torch._dynamo.reset()
    module, batch = made(make, torch.float32, device)
    if fault == WRONG_MASK:
        wrong = WrongMask()
        with torch.no_grad(), config.patch(post_grad_custom_pre_pass=wrong):
            found = warmed(name, compilewatch.compile(module, name=name), batch)
        return found if wrong.done else None
    planted = Planted(fault, in_each=True)
    with torch.no_grad():
        found = warmed(
            name, compilewatch.compile(module, name=name, backend=planted.backend()), batch
        )
    return found if planted.done else None


def visible_faults(make: Callable[[], Made], device: str) -> list[str]:
    """Faults that change the answer of the model by more than its own rounding."""
    module, batch = made(make, torch.float32, device)
    with torch.no_grad():
        answer = module(**batch)
    if isinstance(answer, Tensor) and not answer.is_floating_point():
        return [WRONG_MASK]
    return [WRONG_MASK, *(one for one in FAULTS if device == "cpu" or one not in UNSEEN)]
