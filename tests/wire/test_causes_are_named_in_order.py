"""The most fundamental difference of two configurations is named first, by name only."""

from __future__ import annotations

import pytest
from compilewatch.wire.cache_miss_causes import differences, first_difference
from hypothesis import given
from hypothesis import strategies as st

BASE = {
    "torch": "2.11.0",
    "cuda": "13.0",
    "triton": "3.5",
    "gpu": "NVIDIA H200",
    "env TORCHINDUCTOR_MAX_AUTOTUNE": "0a1b2c3d",
    "inductor_config epilogue_fusion": "deadbeef",
    "dynamo_config recompile_limit": "feedf00d",
    "cache folder": "c0ffee00",
}
NAMES = st.sampled_from(
    [*BASE, "env NCCL_DEBUG", "env OMP_NUM_THREADS", "functorch_config x", "something else"]
)
TABLES = st.dictionaries(NAMES, st.text("0123456789abcdef", min_size=6, max_size=8))


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"torch": "2.13.0", "triton": "3.6", "env A": "1"}, "torch 2.11.0 -> 2.13.0"),
        ({"triton": "3.6", "inductor_config epilogue_fusion": "0"}, "triton 3.5 -> 3.6"),
        ({"gpu": "NVIDIA H100"}, "gpu NVIDIA H200 -> NVIDIA H100"),
        (
            {"env TORCHINDUCTOR_FREEZING": "1", "inductor_config freezing": "1"},
            "env TORCHINDUCTOR_FREEZING",
        ),
        (
            {"inductor_config max_autotune": "1", "dynamo_config recompile_limit": "0"},
            "inductor_config: max_autotune",
        ),
        (
            {"dynamo_config recompile_limit": "0", "cache folder": "0"},
            "dynamo_config: recompile_limit",
        ),
        ({"cache folder": "0"}, "cache folder: another one than before"),
        ({"env NCCL_DEBUG": "1", "env CUDA_VISIBLE_DEVICES": "1", "env TORCH_LOGS": "1"}, ""),
        ({}, ""),
    ],
)
def test_the_most_fundamental_difference_comes_first(change: dict[str, str], cause: str) -> None:
    assert first_difference({**BASE, **change}, BASE) == cause


def test_a_removed_setting_is_a_difference() -> None:
    without = {name: value for name, value in BASE.items() if not name.startswith("env ")}
    assert first_difference(without, BASE) == "env TORCHINDUCTOR_MAX_AUTOTUNE"


def test_a_version_or_folder_unknown_to_one_side_is_no_difference() -> None:
    without = {
        name: value for name, value in BASE.items() if name not in ("triton", "gpu", "cache folder")
    }
    assert first_difference(without, BASE) == first_difference(BASE, without) == ""


@given(TABLES, TABLES)
def test_no_hash_is_shown_and_both_sides_see_equally_many_differences(
    mine: dict[str, str], theirs: dict[str, str]
) -> None:
    there, back = list(differences(mine, theirs)), list(differences(theirs, mine))
    assert len(there) == len(back)
    assert list(differences(mine, mine)) == []
    hashes = [
        value
        for table in (mine, theirs)
        for name, value in table.items()
        if name not in ("torch", "cuda", "triton", "gpu")
    ]
    versions = {
        value
        for table in (mine, theirs)
        for name, value in table.items()
        if name in ("torch", "cuda", "triton", "gpu")
    }
    assert not any(
        value in said
        for said in there
        for value in hashes
        if not any(value in version for version in versions)
    )
