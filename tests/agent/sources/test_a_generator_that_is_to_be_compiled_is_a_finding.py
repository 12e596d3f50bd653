"""A generator function that is passed to `torch.compile` runs eager, because torch does not compile
generators: that is a finding with its place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import torch

from tests.agent.sources.conftest import Seen, found

FILE = "tests/agent/sources/test_a_generator_that_is_to_be_compiled_is_a_finding.py"


@pytest.fixture
def seen() -> Iterator[Seen]:
    watcher = Seen(here=("compilations", "generators"))
    yield watcher
    watcher.uninstall()


def scaled(x: torch.Tensor) -> Iterator[torch.Tensor]:
    for factor in range(3):
        yield x * factor


async def streamed(x: torch.Tensor) -> AsyncIterator[torch.Tensor]:
    yield x + 1


async def awaited(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def total(x: torch.Tensor) -> torch.Tensor:
    result = torch.zeros(3)
    for item in scaled(x):
        result = result + item
    return result


class Stream(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        yield x + 1


class Holder:
    def items(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        yield x - 1


def findings(seen: Seen) -> list[tuple[str, str, int]]:
    return [
        (one.text.split(" is a ")[0], one.where, one.count)
        for one in found(seen.look(), "generator_not_compiled")
    ]


def where(function: object) -> str:
    code = function.__code__  # type: ignore[attr-defined]
    return f"{FILE}:{code.co_firstlineno} in {code.co_name}"


def test_a_generator_function_is_reported_with_its_place(seen: Seen) -> None:
    assert seen.answers["generators"] == ("yes", "")
    assert len(list(torch.compile(scaled, backend="eager")(torch.ones(3)))) == 3
    assert findings(seen) == [("scaled", where(scaled), 1)]


def test_methods_modules_and_async_generators_are_reported_too(seen: Seen) -> None:
    torch.compile(Holder().items, backend="eager")
    torch.compile(streamed, backend="eager")
    torch.compile(Stream(), backend="eager")(torch.ones(3))
    module = Stream()
    module.compile(backend="eager")
    assert {text for text, _, _ in findings(seen)} == {"items", "streamed", "forward"}


def test_a_function_that_uses_a_generator_is_compiled_and_no_finding(seen: Seen) -> None:
    assert torch.compile(total, backend="eager")(torch.ones(3)).tolist() == [3.0] * 3
    torch.compile(awaited, backend="eager")
    torch.compile(torch.nn.Linear(3, 3), backend="eager")(torch.ones(3))
    torch.compiler.disable(scaled)
    report = seen.look()
    assert found(report, "generator_not_compiled") == []
    assert [one.frame for one in report.compiles] == ["total", "inner"]


def test_torchs_own_function_is_restored_afterwards() -> None:
    before = torch._dynamo.eval_frame._TorchDynamoContext.__call__
    watcher = Seen(here=("generators",))
    assert torch._dynamo.eval_frame._TorchDynamoContext.__call__ is not before
    watcher.uninstall()
    assert torch._dynamo.eval_frame._TorchDynamoContext.__call__ is before
