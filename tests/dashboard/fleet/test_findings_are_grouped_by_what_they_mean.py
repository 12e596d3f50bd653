"""Texts that differ only by an address, a long number or a temporary path are one finding; other
texts are not."""

from __future__ import annotations

import pytest

from dashboard.fleet.fold.fingerprint import fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<Foo object at 0x7f0123>", "<Foo object at 0x55aa99ff>"),
        (
            "cannot open /tmp/torchinductor_ada/xy/k.py",
            "cannot open /tmp/torchinductor_bob/zz/k.py",
        ),
        ("id 140234234234 changed", "id 99999112 changed"),
        ("run 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "run 11111111-4f89-11d3-9a0c-0305e82c3302"),
        (
            "in /usr/lib/python3.11/site-packages/torch/nn.py",
            "in /opt/venv/lib/python3.12/site-packages/torch/nn.py",
        ),
        ("two  spaces", "two spaces"),
    ],
)
def test_random_parts_of_a_text_do_not_split_a_finding(one: str, other: str) -> None:
    assert fingerprint(one, "m.py:1") == fingerprint(other, "m.py:1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.size(0) == 96", "x.size(0) == 97"),
        ("graph break in a", "graph break in b"),
        ("ranker/a.py", "ranker/b.py"),
    ],
)
def test_a_different_meaning_is_a_different_finding(one: str, other: str) -> None:
    assert fingerprint(one, "m.py:1") != fingerprint(other, "m.py:1")


def test_a_different_place_is_a_different_finding() -> None:
    assert fingerprint("graph break", "m.py:1") != fingerprint("graph break", "m.py:2")
