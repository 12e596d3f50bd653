"""Guards: the texts as torch writes them, the values that caused recompilations, and the suggested
fixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.ui.charts.guard_advice import (
    VaryingInput,
    count_observed_values,
    dynamic_source,
    find_varying_input,
    format_argument,
    list_guard_remedies,
    pad_size,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tensor 'x' size mismatch at index 0. expected *, actual *", VaryingInput("size", "x", 0)),
        (
            "tensor 'L['x']' size mismatch at index 2. expected 8, actual 9",
            VaryingInput("size", "L['x']", 2),
        ),
        (
            "tensor 'x' stride mismatch at index 1. expected *, actual *",
            VaryingInput("stride", "x", 1),
        ),
        ("L['batch']['ids'].size()[1] == *", VaryingInput("size", "L['batch']['ids']", 1)),
        ("candidates.size(0) == 96", VaryingInput("size", "candidates", 0)),
        ("2 <= x.shape[0] <= *", VaryingInput("size", "x", 0)),
        ("len(L['items']) == *", VaryingInput("length", "L['items']")),
        ("L['n'] == *", VaryingInput("number", "L['n']")),
        ("n == #", VaryingInput("number", "n")),
        ("GLOBAL_STATE changed: grad_mode", None),
        ("___check_obj_id(self.act, *)", None),
        ("", None),
    ],
)
def test_the_varying_input_is_parsed_from_the_guard_text(
    text: str, found: VaryingInput | None
) -> None:
    assert find_varying_input(text) == found


def test_observed_values_take_precedence_over_compiled_in_values() -> None:
    met = count_observed_values(
        [
            "size mismatch at index 0. expected 8, actual 9",
            "size mismatch at index 0. expected 8, actual #",
            "no value",
        ]
    )
    assert ([(one.label, one.count) for one in met.buckets], met.hidden, met.compiled_for) == (
        [("9", 1), ("1,000 and more", 1)],
        1,
        False,
    )
    inside = count_observed_values(["n == 4", "n == 5", "n == 5"])
    assert ([(one.label, one.count) for one in inside.buckets], inside.compiled_for) == (
        [("4", 1), ("5", 2)],
        True,
    )
    assert not count_observed_values([]).buckets


@given(st.lists(st.integers(0, 999), min_size=1, max_size=200))
def test_buckets_contain_every_value(numbers: list[int]) -> None:
    met = count_observed_values(f"expected 8, actual {number}" for number in numbers)
    assert sum(bucket.count for bucket in met.buckets) == met.total == len(numbers)
    assert met.distinct == len(set(numbers)) and met.most <= met.total


@given(st.integers(1, 1 << 20))
def test_a_size_is_padded_to_the_next_power_of_two(value: int) -> None:
    assert pad_size(value) >= value > pad_size(value) // 2 and pad_size(value).bit_count() == 1


def test_padding_is_suggested_only_if_all_sizes_are_known_and_padding_reduces_their_number() -> (
    None
):
    size = VaryingInput("size", "x", 0)

    def titles(*values: str) -> list[str]:
        return [
            way.title
            for way in list_guard_remedies(
                size, count_observed_values(f"expected 1, actual {value}" for value in values)
            )
        ]

    assert "Pad" in titles("65", "66", "100")
    assert (
        "Pad" not in titles("64", "128")
        and "Pad" not in titles("65", "66", "#")
        and "Pad" not in titles("65")
    )
    assert (
        list_guard_remedies(VaryingInput("stride", "x", 0), count_observed_values([]))
        == []
        == list_guard_remedies(None, count_observed_values([]))
    )


def test_names_are_written_in_the_notation_of_torch_and_of_the_job() -> None:
    assert [dynamic_source(name) for name in ("x", "L['x']", "batch['ids']", "self.table")] == [
        "L['x']", "L['x']", "L['batch']['ids']", "L['self'].table",
    ]  # fmt: skip
    assert [format_argument(name) for name in ("x", "L['x']", "L['batch']['ids']")] == [
        "x",
        "x",
        "batch['ids']",
    ]
