"""A graph break is reported with its reason and the user's line; torch's own optimizers break on
purpose and are excluded."""

from __future__ import annotations

import torch

from tests.agent.sources.conftest import Seen, found

FILE = "tests/agent/sources/test_graph_breaks_have_a_place.py"


def checked(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    if x.sum().item() > 0:
        x = x * 2
    print(end="")
    return x - 1


def looped(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        torch._dynamo.graph_break()
        x = x + 1
    with torch.no_grad():
        print(end="")
    return x


LINE = checked.__code__.co_firstlineno


def test_each_break_is_a_finding_with_the_line_that_broke(seen: Seen) -> None:
    torch.compile(checked, backend="eager")(torch.ones(3))
    breaks = {finding.where: finding for finding in found(seen.look(), "graph_break")}
    assert set(breaks) == {f"{FILE}:{LINE + 2} in checked", f"{FILE}:{LINE + 4} in checked"}
    item = breaks[f"{FILE}:{LINE + 2} in checked"]
    assert item.count == 1
    assert item.text.startswith("GB0124 ")
    assert "Tensor.item()" in item.text
    assert "x.sum()" not in item.text


def test_breaks_with_the_same_text_and_place_are_one_finding_with_their_count(seen: Seen) -> None:
    compiled = torch.compile(checked, backend="eager", dynamic=False)
    for length in (3, 4, 5):
        compiled(torch.ones(length))
    breaks = found(seen.look(), "graph_break")
    assert [(finding.where.split(":")[1].split()[0], finding.count) for finding in breaks] == [
        (str(LINE + 2), 3),
        (str(LINE + 4), 3),
    ]


def test_breaks_are_reported_once_although_torch_keeps_its_list(seen: Seen) -> None:
    compiled = torch.compile(checked, backend="eager", dynamic=False)
    compiled(torch.ones(3))
    first = sum(finding.count for finding in found(seen.look(), "graph_break"))
    compiled(torch.ones(4))
    again = sum(finding.count for finding in found(seen.look(), "graph_break"))
    assert (first, again) == (2, 2)


def test_a_reset_that_empties_the_list_loses_no_break(seen: Seen) -> None:
    torch.compile(checked, backend="eager")(torch.ones(3))
    seen.look()
    torch._dynamo.reset()
    torch.compile(checked, backend="eager")(torch.ones(3))
    assert sum(finding.count for finding in found(seen.look(), "graph_break")) == 2


def test_a_break_that_costs_the_whole_frame_skips_it(seen: Seen) -> None:
    def guarded(x: torch.Tensor) -> torch.Tensor:
        try:
            return looped(x)
        finally:
            pass

    torch.compile(guarded, backend="eager")(torch.ones(3))
    report = seen.look()
    assert "skipped" in {compile.outcome for compile in report.compiles}
    assert found(report, "graph_break")


def test_an_optimizer_step_is_not_a_graph_break(seen: Seen) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step() -> None:
        weight.grad = torch.ones(3)
        optimizer.step()

    torch.compile(step, backend="eager")()
    assert found(seen.look(), "graph_break") == []
