"""Texts about the user's code that leave the process contain no source line, no address, no
absolute path and no long number."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from compilewatch.sources.dynamo.scrubber import (
    break_reason,
    error_reason,
    guard_group,
    guard_reason,
    normalize,
    shorten_path,
)
from compilewatch.sources.dynamo.user_frames import find_user_place, is_installed

REASONS = {
    "0/0: tensor 'x' size mismatch at "
    "index 0. expected 2, actual 3": "tensor 'x' size mismatch at index 0. expected 2, actual 3",
    "[0/1]: L['n'] == 3  # return x * n  # model.py:12 in forward": "L['n'] == 3",
    "3/4: ___check_obj_id(L['self'], 140234567890)": "___check_obj_id(L['self'], #)",
    "2/1: ___stack0[1] == 0.8444218515250481": "___stack0[1] == #",
    "tensor dispatch key set mismatch at 0x7f3d4654ee10": "tensor dispatch key set mismatch at 0x*",
}


@pytest.mark.parametrize(("reason", "text"), REASONS.items())
def test_a_guards_text_is_the_guard_alone(reason: str, text: str) -> None:
    assert guard_reason(reason) == text


def test_guards_are_grouped_for_every_value() -> None:
    texts = {
        guard_group(f"0/{n}: tensor 'x' size mismatch at index 0. expected {n}, actual {n + 1}")
        for n in range(9)
    }
    assert texts == {"tensor 'x' size mismatch at index 0. expected *, actual *"}


GROUPS = {
    "s == *": ["0/0: s == 'alice@example.org'  # if s == 'a':  # app.py:3 in f", '0/1: s == "bob"'],
    "L['n'] == *": [
        "0/0: L['n'] == 3",
        "0/1: L['n'] == -41",
        "0/2: L['n'] == 123456",
        "0/3: L['n'] == 1.5e-05",
    ],
    "d['a'] == *": ["1/0: d['a'] == 1", "1/1: d['a'] == 'x'"],
    "* <= x.size()[0]": ["2/0: 6 <= x.size()[0]  # return x * 2", "2/1: 17 <= x.size()[0]"],
    "Eq(s0, *)": ["3/0: Eq(s0, 4)", "3/1: Eq(s0, 77)"],
    "self.training == True": ["4/0: self.training == True"],
    "BACKEND_MATCH failure: torch.compile detected different backend callables": [
        "0/1: BACKEND_MATCH failure: torch.compile detected different backend callables. "
        "Cached backend: a (id=0x7f81)."
    ],
}


@pytest.mark.parametrize(("group", "reasons"), GROUPS.items())
def test_a_compiled_in_value_is_not_part_of_its_group(group: str, reasons: list[str]) -> None:
    assert {guard_group(reason) for reason in reasons} == {group}


@pytest.mark.parametrize(
    "text",
    [
        "alice@example.org",
        "a prompt " * 1000,
        "heading  # and more",
        'it\'s "quoted"',
        "C:\\Users\\",
    ],
    ids=[
        "short",
        "longer than a reported text",
        "as if a source line followed",
        "both quotes",
        "escape at its end",
    ],
)
def test_a_text_argument_stays_in_the_process(text: str) -> None:
    told = f"0/0: s == {text!r}  # if s == 'a':  # app.py:3 in f"
    assert (
        guard_reason(told)
        == guard_group(told)
        == guard_reason(told[: 9 + len(text) // 2])
        == "s == *"
    )


def test_texts_in_a_set_stay_in_the_process() -> None:
    assert {
        guard_group(f"0/0: s == {told}") for told in ("{'alice', 'a  # b'}", "frozenset({'bob'})")
    } == {"s == *"}


def test_a_break_has_torchs_id() -> None:
    page = (
        "For more details about this graph break, please visit: "
        "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html"
    )
    assert (
        break_reason(f"Unsupported call\n  Explanation: Not traced.\n\n {page}\n")
        == "GB0124 Unsupported call. Explanation: Not traced."
    )


def test_a_break_is_reported_as_its_first_line_and_its_explanation() -> None:
    reason = (
        "Unsupported call\n  Explanation: Dynamo does not trace `f`.\n  Hint: rewrite\n\n  "
        "Developer debug context: secret = 'x'\n"
    )
    assert break_reason(reason) == "Unsupported call. Explanation: Dynamo does not trace `f`."


def test_an_error_ends_before_the_users_code_that_torch_quotes() -> None:
    text = error_reason(
        'backend failed\n\nfrom user code:\n  File "/home/someone/model.py", line 3, in '
        "f\n    return secret(x)"
    )
    assert text == "backend failed"


def test_paths_are_cut_to_the_package_or_the_working_folder() -> None:
    assert (
        shorten_path("/opt/venv/lib/python3.11/site-packages/timm/layers/mlp.py")
        == "timm/layers/mlp.py"
    )
    assert shorten_path(str(Path.cwd() / "ranker" / "model.py")) == "ranker/model.py"
    assert shorten_path("/srv/elsewhere/deep/model.py") == "model.py"
    assert shorten_path(str(Path(tempfile.gettempdir()) / "tmpabc" / "cell.py")) == "<tmp>/cell.py"


def test_paths_inside_a_text_are_cut_too() -> None:
    assert (
        normalize("cannot open '/home/someone/private/data.bin' twice")
        == "cannot open 'data.bin' twice"
    )


def test_absurdly_long_texts_are_cut() -> None:
    assert len(normalize("x" * 5_000_000)) == 512
    assert len(guard_reason("x" * 5_000_000)) == 2048


def test_the_users_frame_is_the_first_outside_torch_and_installed_packages() -> None:
    torch = sys.modules["torch"].__file__ or ""
    frames = [
        (torch, 1, "inside"),
        ("/x/site-packages/transformers/modeling.py", 2, "layer"),
        (str(Path.cwd() / "app.py"), 3, "main"),
        ("z.py", 4, "z"),
    ]
    place = find_user_place(frames)
    assert str(place) == "app.py:3 in main"


def test_a_folder_that_is_called_torch_is_the_users_own() -> None:
    assert not is_installed("/srv/torch/model.py")
