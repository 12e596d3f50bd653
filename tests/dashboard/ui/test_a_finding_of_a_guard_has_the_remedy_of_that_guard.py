"""Guard findings of different kinds have different remedies on the Model page, and new kinds of
findings have a title."""

from __future__ import annotations

from html import unescape

import pytest
from compilewatch.recording.compile_requests import (
    FINDING_TEXT,
    WHY_DROPPED,
    WHY_FAILED,
    WHY_SKIPPED,
)
from compilewatch.sources.dynamo.compile_history import REPEAT_REASONS as AGENT_AGAIN
from compilewatch.wire.messages import FINDING_KINDS
from django.test import Client

from dashboard.fleet.metrics.recompile_reasons import REPEAT_REASONS
from dashboard.projects.models import Project
from dashboard.ui.pages.findings.columns import KINDS
from dashboard.ui.pages.findings.remedies import find_remedy
from tests.dashboard.ui.charts_factory import Plan, charted
from tests.dashboard.ui.charts_story import finding

GUARDS = {
    "list(dict.keys(L['names'])) == ['a', 'b']": "the same keys in the same order",
    "Cache line invalidated because L['kind'] got deallocated": "keep the object alive",
    "tensor 'x' size mismatch at index "
    "0. expected *, actual *": "torch._dynamo.decorators.mark_unbacked",
    "GLOBAL_STATE changed: num_threads": "torch.set_num_threads",
    "___check_type_id(L['x'], #), type=<class 'list'>": "pass one type",
    "___check_obj_id(L['f'], #), type=<class 'function'>": "pass the same object",
    "L['self'].scale == *": "torch._dynamo.config.allow_unspec_int_on_nn_module = True",
    "Duplicate tensor found where not expected! tensor 'y'": "clone() one of the two",
    "not hasattr(L['options'], 'bias')": "set it in __init__",
    "L['n'] == *": "The value is compiled in",
}
NEW = {
    "compiled_nothing": ("Compiled nothing", "Keep and call the result of torch.compile"),
    "guards_left_out": ("Guards left out", "a golden batch with a second shape"),
    "hook_too_late": ("Hook registered too late", "Register the hook before the first call"),
    "generator_not_compiled": ("Generator not compiled", "Torch runs a generator function eager"),
    "limit_not_in_force": ("Limit not in force", "in each thread"),
    "wrapper_not_entered": (
        "Watched module not called",
        "Watch the module that the framework calls",
    ),
}


@pytest.mark.parametrize("text", GUARDS)
def test_a_guard_has_only_the_remedy_of_its_kind(text: str) -> None:
    assert [part for part in GUARDS.values() if part in find_remedy("guard", text)] == [
        GUARDS[text]
    ]


def test_the_page_shows_each_guard_with_its_remedy(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=30))
    for text in list(GUARDS)[:4]:
        finding(made, "guard", text, "ranker/features.py:61", {"1": 4})
    shown = unescape(signed_in.get(made.url("findings/")).content.decode())
    assert [part for part in list(GUARDS.values())[:4] if part not in shown] == []


def test_every_kind_of_the_wire_format_has_a_title() -> None:
    assert set(FINDING_KINDS) - set(KINDS) == set()


def test_a_recompiled_function_has_the_remedy_of_its_cause() -> None:
    assert {reason: find_remedy("guard", text) for reason, text in AGENT_AGAIN.items()} == {
        reason: known.remedy for reason, known in REPEAT_REASONS.items()
    }


def test_new_kinds_have_a_title_and_a_remedy_on_the_page(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=30))
    for kind in NEW:
        finding(made, kind, f"text of {kind}", "ranker/features.py:61", {"1": 4})
    shown = unescape(signed_in.get(made.url("findings/")).content.decode())
    assert [words for words in NEW.values() if not all(part in shown for part in words)] == []


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        (WHY_DROPPED, "do not use self = torch.compile(self)"),
        (WHY_FAILED, "Fix the compile error"),
        (WHY_SKIPPED, "fullgraph"),
    ],
)
def test_a_region_that_compiled_nothing_has_the_remedy_of_its_cause(why: str, remedy: str) -> None:
    assert remedy in find_remedy("compiled_nothing", FINDING_TEXT.format(region="score", why=why))


def test_a_failed_compilation_has_a_remedy() -> None:
    assert "aot_eager" in find_remedy(
        "compile_error",
        "BackendCompilerFailed: backend='inductor' raised: RuntimeError: no C++ compiler here",
    )
