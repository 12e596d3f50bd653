"""A golden batch that meets only code without a graph is not compared: no part of the callable was
compiled."""

from __future__ import annotations

import compilewatch
import torch

from tests.agent.sources.conftest import Seen


def test_code_without_a_graph_is_not_compared(watching: Seen) -> None:
    hidden = torch.compiler.disable(lambda x: x * 2.0)
    bare = torch.compile(lambda x: hidden(x), backend="aot_eager")
    partly = torch.compile(lambda x: hidden(x + 1.0) + 1.0, backend="aot_eager")
    for compiled in (bare, partly):
        for _ in range(3):
            compiled(torch.ones(4))
    found = compilewatch.golden("bare", bare, torch.ones(4))
    assert (found.state, found.text) == ("not compared", "nothing of it was compiled")
    assert compilewatch.golden("partly", partly, torch.ones(4)).state == "passed"


def test_code_without_a_graph_is_not_compared_while_lookups_are_not_counted(watching: Seen) -> None:
    hidden = torch.compiler.disable(lambda x: x * 2.0)
    bare = torch.compile(lambda x: hidden(x), backend="aot_eager")
    whole = torch.compile(lambda x: x * 3.0, backend="aot_eager")
    for compiled in (bare, whole):
        compiled(torch.ones(4))
    counting = next(source for source in watching.sources if source.name == "compiled_calls")
    counting.uninstall()
    assert watching.recorder.lookup_step == 0
    assert compilewatch.golden("bare", bare, torch.ones(4)).state == "not compared"
    assert compilewatch.golden("whole", whole, torch.ones(4)).state == "passed"
    assert watching.recorder.lookup_step == 0
