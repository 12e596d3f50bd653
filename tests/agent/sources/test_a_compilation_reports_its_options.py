"""Each compilation holds the backend, the mode, whether sizes may vary and whether the graph must
be whole, as passed to torch.compile."""

from __future__ import annotations

import functools
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.instrument.compile_mode import mode_of
from compilewatch.sources.dynamo.compile_options import options_of
from torch._dynamo.backends.common import aot_autograd

from tests.agent.sources.conftest import Seen
from tests.machine import need


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def my_backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
    return graph.forward


TOLD: list[tuple[dict[str, Any], tuple[str, str, str, bool]]] = [
    ({"backend": "eager"}, ("eager", "", "automatic", False)),
    ({"backend": "eager", "dynamic": True}, ("eager", "", "yes", False)),
    ({"backend": "aot_eager", "dynamic": False}, ("aot_eager", "", "no", False)),
    ({"backend": my_backend, "fullgraph": True}, ("my_backend", "", "automatic", True)),
    ({}, ("inductor", "default", "automatic", False)),
    ({"mode": "reduce-overhead"}, ("inductor", "reduce-overhead", "automatic", False)),
    (
        {"mode": "max-autotune-no-cudagraphs", "dynamic": False},
        ("inductor", "max-autotune-no-cudagraphs", "no", False),
    ),
]


@pytest.mark.parametrize(("options", "said"), TOLD, ids=range(len(TOLD)))
def test_a_compilation_reports_its_options(
    seen: Seen, options: dict[str, Any], said: tuple[str, str, str, bool]
) -> None:
    if said[0] == "inductor":
        need("a C++ compiler")
    torch.compile(doubled, **options)(torch.ones(3))
    (compile,) = seen.compiles()
    assert (compile.backend, compile.mode, compile.dynamic, compile.fullgraph) == said


def test_a_backward_reports_the_options_of_its_forward(seen: Seen) -> None:
    backend = aot_autograd(fw_compiler=lambda graph, _: graph.forward)
    torch.compile(doubled, backend=backend, dynamic=False)(
        torch.ones(3, requires_grad=True)
    ).sum().backward()
    forward, backward = seen.compiles()
    assert (backward.kind, backward.dynamic, backward.fullgraph) == ("backward", "no", False)
    assert (forward.id, forward.backend) == (backward.id, backward.backend)


def test_outside_a_compilation_nothing_is_known() -> None:
    assert options_of({}) == ("", "", "", None)


def test_a_value_of_an_unexpected_type_is_unknown() -> None:
    assert options_of({"compiler_fn": None, "one_graph": "yes"}) == ("", "", "automatic", None)


class Backend:
    """A backend without a name of its own."""

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        return graph.forward


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        (Backend(), "Backend"),
        (functools.partial(my_backend), "my_backend"),
        (my_backend, "my_backend"),
    ],
)
def test_a_compilation_and_its_region_name_the_class_and_no_address(
    watching: Seen, backend: Any, name: str
) -> None:
    call = torch.compile(doubled, backend=backend, dynamic=False)
    assert mode_of(call) == name
    call(torch.ones(3))
    (compile,) = watching.compiles()
    assert compile.backend == name


@pytest.mark.parametrize(
    ("backend", "name"), [("eager", "eager"), (my_backend, "my_backend"), (Backend(), "Backend")]
)
def test_the_region_names_the_backend_and_no_address(
    watching: Seen, backend: Any, name: str
) -> None:
    def told(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    call = compilewatch.compile(told, backend=backend, dynamic=False)
    assert call(torch.ones(3)).tolist() == [2, 2, 2]
    (fact,) = [fact for fact in watching.look().facts if fact.data.get("name") == "torch.compile"]
    assert (fact.data["backend"], fact.data["dynamic"]) == (name, "False")
