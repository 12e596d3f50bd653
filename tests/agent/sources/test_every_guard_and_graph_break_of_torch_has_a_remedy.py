"""Each entry of torch's own lists of guard kinds and graph breaks has a remedy, and torch's text of
a failed guard gets that remedy."""

from __future__ import annotations

import gc
import json
import re
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._C._dynamo.guards as native
import torch._dynamo.config as dynamo_config
from torch._dynamo.guards import GuardBuilder

from dashboard.ui.pages.findings import guard_remedies as remedies
from dashboard.ui.pages.findings.break_remedies import BREAKS
from dashboard.ui.pages.findings.guard_remedies import GUARDS, find_guard_remedy
from dashboard.ui.pages.findings.remedies import TEXTS, find_remedy
from tests.agent.sources.conftest import Seen, found

REGISTRY = json.loads(
    (Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json").read_text()
)
BUILT = [name for name in dir(GuardBuilder) if name.isupper()]
NATIVE = [
    name
    for name, kind in vars(native).items()
    if isinstance(kind, type) and issubclass(kind, native.LeafGuard) and name.isupper()
]
ALL = [*BREAKS.values(), *GUARDS.values(), *(sentence for _, _, sentence in TEXTS)]
ONES = torch.ones(3)


def test_every_kind_of_guard_has_a_remedy() -> None:
    assert len(BUILT) > 40 and len(NATIVE) > 25
    assert {*BUILT, *NATIVE} - set(GUARDS) == set()
    assert [
        name for name in (*BUILT, *NATIVE) if not find_guard_remedy(f"{name} of L['x'] failed")
    ] == []


def test_only_the_guard_for_any_python_code_has_the_general_remedy() -> None:
    assert [name for name, remedy in GUARDS.items() if remedy == GUARDS["LAMBDA_GUARD"]] == [
        "LAMBDA_GUARD"
    ]


def test_every_graph_break_has_a_remedy() -> None:
    assert {int(name.removeprefix("GB")) for name in REGISTRY} == set(BREAKS)
    for name, entries in REGISTRY.items():
        assert find_remedy("graph_break", f"{name} {entries[0]['Gb_type']}."), name


def test_breaks_that_torch_calls_user_errors_are_described_as_such_or_show_the_fix() -> None:
    """By torch's own category in its hint."""
    errors = [
        int(name[2:])
        for name, entries in REGISTRY.items()
        if "error when running in eager" in " ".join(entries[0]["Hints"])
    ]
    bugs = [
        int(name[2:])
        for name, entries in REGISTRY.items()
        if "likely to be a Dynamo bug" in " ".join(entries[0]["Hints"])
    ]
    others = set(BREAKS) - set(errors) - set(bugs)
    assert {BREAKS[number] for number in bugs} & {BREAKS[number] for number in errors} == set()
    assert len({BREAKS[number] for number in others}) > 50


def test_a_remedy_is_one_or_two_short_sentences() -> None:
    for sentence in {
        *ALL,
        *(
            value
            for name, value in vars(remedies).items()
            if name.startswith("_") and name != "__doc__" and isinstance(value, str)
        ),
    }:
        if " " in sentence:
            assert sentence.endswith((".", ")")) and "\n" not in sentence and len(sentence) < 180, (
                sentence
            )


def test_every_api_that_a_remedy_names_exists() -> None:
    names = {
        name.rstrip(".") for sentence in ALL for name in re.findall(r"\btorch(?:\.\w+)+", sentence)
    }
    assert len(names) > 30
    for name in sorted(names):
        if name.startswith("torch._dynamo.config."):
            assert name.rpartition(".")[2] in dynamo_config._config, name
            continue
        if name == "torch._inductor.custom_graph_pass":
            continue
        holder: Any = torch
        for part in name.split(".")[1:]:
            holder = getattr(holder, part)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale if self.training else x


class Options:
    def __init__(self, **named: int) -> None:
        self.__dict__.update(named)


def of_modules(change: Callable[[Layer], None]) -> Callable[[], None]:
    def run() -> None:
        layer = Layer()
        compiled = torch.compile(layer, backend="eager")
        compiled(ONES)
        change(layer)
        compiled(ONES)

    return run


def of_calls(
    function: Callable[..., object], *calls: tuple[object, ...], dynamic: bool | None = False
) -> Callable[[], None]:
    def run() -> None:
        compiled = torch.compile(function, backend="eager", dynamic=dynamic)
        for arguments in calls:
            compiled(*arguments)

    return run


def of_states(*states: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        compiled = torch.compile(lambda x: x + 1, backend="eager")
        for state in states:
            with state():  # type: ignore[attr-defined]
                compiled(torch.ones(3))

    return run


def of_a_dead_object() -> None:
    compiled = torch.compile(lambda x, kind: x + kind.value, backend="eager")
    for _ in range(2):
        compiled(ONES, type("Short", (), {"value": 1}))
        gc.collect()


def of_threads() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    compiled(ONES)

    def other() -> None:
        torch.set_num_threads(torch.get_num_threads() + 1)
        compiled(ONES)

    before = torch.get_num_threads()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    torch.set_num_threads(before)


def has(x: torch.Tensor, options: Options) -> torch.Tensor:
    return x + 1 if hasattr(options, "bias") else x


def member(x: torch.Tensor, names: dict[str, int]) -> torch.Tensor:
    return x + 1 if "bias" in names else x


def keys(x: torch.Tensor, names: dict[str, int]) -> torch.Tensor:
    for name in names:
        x = x + len(name)
    return x


def twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x + y


def item(x: torch.Tensor, n: Any) -> torch.Tensor:
    return x * n if n is not None else x + 1


FAILING: dict[str, tuple[Callable[[], None], str]] = {
    "size": (of_calls(lambda x: x + 1, (torch.ones(3),), (torch.ones(4),)), remedies._SIZE),
    "size one": (of_calls(lambda x: x + 1, (torch.ones(5),), (torch.ones(1),)), remedies._SIZE),
    "size one, dynamic": (
        of_calls(lambda x: x + 1, (torch.ones(1),), (torch.ones(5),), dynamic=True),
        remedies._SIZE,
    ),
    "bound": (
        of_calls(
            lambda x: x + 1 if x.shape[0] > 8 else x,
            (torch.ones(9),),
            (torch.ones(5),),
            dynamic=True,
        ),
        remedies._SHAPES,
    ),
    "stride": (
        of_calls(lambda x: x + 1, (torch.ones(3, 4),), (torch.ones(4, 3).t(),)),
        remedies._STRIDE,
    ),
    "rank": (of_calls(lambda x: x + 1, (ONES,), (torch.ones(3, 3),)), remedies._RANK),
    "dtype": (of_calls(lambda x: x + 1, (ONES,), (ONES.double(),)), remedies._DTYPE),
    "gradient": (
        of_calls(lambda x: x + 1, (ONES,), (torch.ones(3, requires_grad=True),)),
        remedies._REQUIRES_GRAD,
    ),
    "number": (of_calls(item, (ONES, 2), (ONES, 3)), remedies._VALUE),
    "float": (of_calls(item, (ONES, 2.5), (ONES, 3.5)), remedies._VALUE),
    "text": (
        of_calls(lambda x, s: x + 1 if s == "a" else x, (ONES, "a"), (ONES, "b")),
        remedies._VALUE,
    ),
    "flag": (of_calls(lambda x, f: x + 1 if f else x, (ONES, True), (ONES, False)), remedies._FLAG),
    "nan": (of_calls(item, (ONES, float("nan")), (ONES, 1.0)), remedies._NAN),
    "none": (of_calls(item, (ONES, None), (ONES, 2)), remedies._NONE),
    "type": (of_calls(lambda x, xs: x + xs[0], (ONES, [1]), (ONES, (1,))), remedies._TYPE),
    "length": (of_calls(lambda x, xs: x + sum(xs), (ONES, [1]), (ONES, [1, 2])), remedies._LENGTH),
    "function": (
        of_calls(lambda x, f: f(x), (ONES, torch.sin), (ONES, torch.cos)),
        remedies._OBJECT,
    ),
    "key": (of_calls(member, (ONES, {"bias": 1}), (ONES, {"gain": 1})), remedies._MEMBERS),
    "order of keys": (
        of_calls(keys, (ONES, {"a": 1, "bb": 2}), (ONES, {"bb": 2, "a": 1})),
        remedies._KEYS,
    ),
    "attribute": (of_calls(has, (ONES, Options(bias=1)), (ONES, Options())), remedies._HAS),
    "alias": (of_calls(twice, (torch.ones(3), torch.ones(3)), (ONES, ONES)), remedies._ALIAS),
    "no alias": (of_calls(twice, (ONES, ONES), (torch.ones(3), torch.ones(3))), remedies._ALIAS),
    "range": (
        of_calls(lambda x, r: x + next(r), (ONES, iter(range(3))), (ONES, iter(range(1, 4)))),
        remedies._ITERATOR,
    ),
    "counter": (
        of_calls(lambda x, c: x + next(c), (ONES, count(1)), (ONES, count(5))),
        remedies._ITERATOR,
    ),
    "training": (of_modules(lambda layer: layer.eval() and None), remedies._TRAINING),
    "number of a module": (
        of_modules(lambda layer: setattr(layer, "scale", 3)),
        remedies._MODULE_INT,
    ),
    "grad mode": (of_states(torch.enable_grad, torch.no_grad), remedies._GRAD),
    "autocast": (
        of_states(torch.enable_grad, lambda: torch.autocast("cpu", dtype=torch.bfloat16)),
        remedies._AUTOCAST,
    ),
    "threads": (of_threads, remedies._THREADS),
    "device": (of_states(torch.enable_grad, lambda: torch.device("meta")), remedies._MODES),
    "dead": (of_a_dead_object, remedies._DEAD),
}


@pytest.mark.parametrize("case", FAILING)
def test_torchs_text_of_a_guard_gets_the_remedy_of_that_guard(seen: Seen, case: str) -> None:
    run, remedy = FAILING[case]
    run()
    guards = found(seen.look(), "guard")
    assert guards, case
    assert [find_remedy("guard", guard.text) for guard in guards] == [remedy] * len(guards), [
        guard.text for guard in guards
    ]
