"""Torch's text for a common graph break, guard failure or operator fallback has a hint on the Model
page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from dashboard.ui.pages.findings.remedies import BREAKS, TEXTS, build_break_url, find_remedy
from tests.agent.sources.conftest import Seen, found

Job = Callable[[torch.Tensor], object]


@torch.compiler.disable
def outside(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def branch(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x


def printing(x: torch.Tensor) -> torch.Tensor:
    print(end="")
    return x + 1


def sleeping(x: torch.Tensor) -> torch.Tensor:
    time.sleep(0)
    return x + 1


def reading(x: torch.Tensor) -> torch.Tensor:
    open("/dev/null").close()  # noqa: PTH123 - typical user code
    return x + 1


def broken(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x + 1


BREAKING: list[Job] = [
    branch,
    printing,
    sleeping,
    reading,
    broken,
    lambda x: x.sum().item(),
    lambda x: torch.tensor(x.tolist()),
    lambda x: torch.nonzero(x) + 1,
    lambda x: outside(x) * 2,
    lambda x: x.requires_grad_().mul(2),
]


@pytest.mark.parametrize("job", BREAKING)
def test_a_common_break_has_a_remedy(seen: Seen, job: Job) -> None:
    torch.compile(job, backend="eager")(torch.ones(3))
    breaks = found(seen.look(), "graph_break")
    assert breaks
    for finding in breaks[:1]:
        assert find_remedy("graph_break", finding.text), finding.text


RECOMPILING: list[tuple[Callable[..., object], list[tuple[object, ...]]]] = [
    (lambda x: x + 1, [(torch.ones(3),), (torch.ones(4),)]),
    (lambda x: x + 1, [(torch.ones(3),), (torch.ones(3, 3),)]),
    (lambda x: x + 1, [(torch.ones(3),), (torch.ones(3).double(),)]),
    (lambda x, n: x * n, [(torch.ones(3), 2), (torch.ones(3), 3)]),
    (lambda x, s: x + 2 if s == "a" else x + 1, [(torch.ones(3), "a"), (torch.ones(3), "b")]),
    (lambda x, xs: x + sum(xs), [(torch.ones(3), [1]), (torch.ones(3), [1, 2])]),
    (lambda x, f: f(x), [(torch.ones(3), torch.sin), (torch.ones(3), torch.cos)]),
]


@pytest.mark.parametrize(("job", "calls"), RECOMPILING)
def test_a_common_guard_failure_has_a_remedy(
    seen: Seen, job: Callable[..., object], calls: list[tuple[object, ...]]
) -> None:
    compiled = torch.compile(job, backend="eager", dynamic=False)
    for arguments in calls:
        compiled(*arguments)
    (guard,) = found(seen.look(), "guard")
    assert find_remedy("guard", guard.text), guard.text


def test_every_id_with_a_hint_exists_in_torch() -> None:
    registry = json.loads(
        (Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json").read_text()
    )
    assert {f"GB{number:04d}" for number in BREAKS} <= set(registry)


def test_a_hint_is_one_sentence() -> None:
    for sentence in (*BREAKS.values(), *(sentence for _, _, sentence in TEXTS)):
        assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 170, sentence


def test_an_unknown_finding_has_no_hint() -> None:
    assert (
        find_remedy("graph_break", "GB9999 Something new.")
        == find_remedy("cudagraph_skip", "a reason of a later torch")
        == ""
    )


def test_torchs_own_page_is_named_by_its_id() -> None:
    assert build_break_url("graph_break", "GB0124 Unsupported call").endswith("/gb0124.html")
    assert (
        build_break_url("graph_break", "generic_jump TensorVariable()")
        == build_break_url("guard", "GB0124 x")
        == ""
    )


@pytest.mark.parametrize(
    ("kind", "text", "hint"),
    [
        (
            "fallback",
            "no inductor kernel for torch.ops.vllm.unified_attention_with_output.default",
            "by design",
        ),
        (
            "fallback",
            "no inductor kernel for torch.ops._C.onednn_mm.default",
            "kernel of the engine",
        ),
        (
            "fallback",
            "no inductor kernel for torch.ops.aten.linalg_inv_ex.default",
            "replace it",
        ),
        (
            "cache_miss",
            "vLLM's cache key: config_hash (an option of the engine, or the model's configuration)",
            "same engine options",
        ),
        ("cache_miss", "vLLM's cache key: env VLLM_TARGET_DEVICE", "Set the variable"),
        ("cache_miss", "vLLM's cache key: version 0.31.0 -> 0.32.0", "After an upgrade"),
        (
            "aot_load_failed",
            "AOT compilation cannot be loaded: 'function' object has no attribute "
            "'finalize_loading'",
            "bug in vLLM",
        ),
        (
            "aot_load_failed",
            "AOT compilation cannot be loaded: Source code has changed since",
            "code changed",
        ),
    ],
)
def test_findings_of_an_engine_have_fitting_remedies(kind: str, text: str, hint: str) -> None:
    assert hint in find_remedy(kind, text)
