"""A guard that fails for many classes, numbers or sizes is one finding, with the failing values,
their number, and their variation."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from compilewatch.sources.dynamo.guard_values import (
    MAX_DISTINCT_VALUES,
    MAX_GUARDS,
    FailedGuard,
    GuardValues,
)
from compilewatch.wire.messages import MAX_VALUES, Finding

from tests.agent.sources.conftest import Seen, found


class Wrapped(torch.nn.Module):
    def __init__(self, block: torch.nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)


def block(number: int) -> torch.nn.Module:
    kind = type(
        f"Block{number}",
        (torch.nn.Module,),
        {"forward": lambda self, x: x + 1, "__module__": "model"},
    )
    return kind()


def the_guard(seen: Seen) -> Finding:
    (finding,) = found(seen.look(), "guard")
    return finding


def test_twelve_types_of_blocks_are_one_finding(seen: Seen) -> None:
    with torch._dynamo.config.patch(recompile_limit=64):
        for number in range(12):
            torch.compile(Wrapped(block(number)), backend="eager")(torch.ones(3))
    guard = the_guard(seen)
    assert guard.text == "___check_type_id(self._modules['block'], #), type=<class *>"
    assert (guard.count, guard.distinct, guard.pattern) == (11, 12, "distinct values")
    assert guard.values == [f"model.Block{number}" for number in range(MAX_VALUES)]


@pytest.mark.parametrize(
    ("numbers", "values", "pattern"),
    [
        ((2, 3, 4, 5), ["2", "3", "4", "5"], "grows by one"),
        ((7, 3), ["7", "3"], "alternates"),
        ((7, 3, 2500), ["7", "3", "#"], "distinct values"),
    ],
)
def test_numbers_are_reported_with_their_variation(
    seen: Seen, numbers: Iterable[int], values: list[str], pattern: str
) -> None:
    @torch.compile(backend="eager", dynamic=False)
    def scaled(x: torch.Tensor, settings: dict[str, list[int]]) -> torch.Tensor:
        return x * settings["factors"][0]

    for number in numbers:
        scaled(torch.ones(3), {"factors": [number]})
    guard = the_guard(seen)
    assert guard.text == "settings['factors'][0] == *"
    assert (guard.values, guard.distinct, guard.pattern) == (values, len(values), pattern)


def test_sizes_of_static_and_of_dynamic_code_are_one_finding_each(seen: Seen) -> None:
    static = torch.compile(lambda x: x + 1, backend="eager", dynamic=False)
    for length in (2, 9, 5):
        static(torch.ones(length))
    guard = the_guard(seen)
    assert (guard.text, guard.values) == (
        "tensor 'x' size mismatch at index 0. expected *, actual *",
        ["2", "9", "5"],
    )

    dynamic = torch.compile(
        lambda x: x * 2 if x.shape[0] < 5 else x * 3, backend="eager", dynamic=True
    )
    for length in (2, 7, 1):
        dynamic(torch.ones(length))
    guard = the_guard(seen)
    assert (guard.text, guard.count, guard.values) == ("* <= x.size()[0]", 2, ["7", "1"])


def test_a_changing_requires_grad_is_one_finding(seen: Seen) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    for needs in (False, True):
        compiled(torch.ones(3, requires_grad=needs))
    guard = the_guard(seen)
    assert guard.text == "tensor 'x' requires_grad mismatch. expected requires_grad=*"
    assert (guard.values, guard.distinct, guard.pattern) == (["0", "1"], 2, "alternates")


def test_a_text_argument_is_counted_and_stays_in_the_process(seen: Seen) -> None:
    @torch.compile(backend="eager")
    def answer_to(x: torch.Tensor, who: str) -> torch.Tensor:
        return x * 2 if who == "alice" else x * 3

    for who in ("alice", "bob", "carol"):
        answer_to(torch.ones(3), who)
    guard = the_guard(seen)
    assert (guard.text, guard.values, guard.distinct, guard.pattern) == (
        "who == *",
        [],
        3,
        "distinct values",
    )


def test_looking_up_a_value_runs_no_code_of_the_job(seen: Seen) -> None:
    class Settings:
        looked_at = 0

        def __init__(self, factor: int) -> None:
            self._factor = factor

        @property
        def factor(self) -> int:
            type(self).looked_at += not torch.compiler.is_compiling()
            return self._factor

    @torch.compile(backend="eager", dynamic=False)
    def scaled(x: torch.Tensor, settings: Settings) -> torch.Tensor:
        return x * settings.factor

    for factor in (2, 3, 5):
        scaled(torch.ones(3), Settings(factor))
    assert the_guard(seen).values == ["2", "3", "5"]
    assert Settings.looked_at == 0


def test_values_continue_to_count_over_consecutive_windows(seen: Seen) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager", dynamic=False)
    seen_so_far = []
    for length in (2, 3, 4, 5):
        compiled(torch.ones(length))
        seen_so_far += [(guard.distinct, guard.pattern) for guard in found(seen.look(), "guard")]
    assert seen_so_far == [(2, "alternates"), (3, "grows by one"), (4, "grows by one")]


def test_a_flood_of_guards_and_values_stays_small() -> None:
    values = GuardValues()
    for number in range(4 * MAX_DISTINCT_VALUES):
        varies = values.note(
            "n == *", "app.py:3 in f", [FailedGuard("n == *", str(number), str(number + 1))]
        )
    assert (len(varies.values), varies.distinct, varies.pattern) == (
        MAX_VALUES,
        MAX_DISTINCT_VALUES,
        "grows by one",
    )
    for number in range(4 * MAX_GUARDS):
        values.note(f"L[{number}] == *", "app.py:3 in f", [FailedGuard("", "1", "2")])
    assert len(values._guards) == MAX_GUARDS
