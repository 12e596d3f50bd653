"""Cause of a cache miss in vLLM: a factor of the key that differs is reported before a folder that
depends on the key."""

from __future__ import annotations

import datetime as dt

import pytest
from compilewatch.wire.cache_miss_causes import (
    ENGINE,
    FOLDER,
    OTHER_FOLDER,
    engine_component,
    engine_differences,
)

from dashboard.fleet.selectors.compilations.cache_miss_causes import CacheClient, explain_miss

NOW = dt.datetime(2026, 11, 26, tzinfo=dt.UTC)
KEY = {f"{ENGINE}config": "a", f"{ENGINE}env": "b", f"{ENGINE}version": "0.32"}


def started(components: dict[str, str], minute: int) -> CacheClient:
    process = CacheClient(
        minute, f"process {minute}", "H100", None, NOW + dt.timedelta(minutes=minute)
    )
    process.components, process.keys = components, {"one", "two"}
    return process


def cause(now: dict[str, str], before: dict[str, str]) -> str:
    return explain_miss(started(now, 1), started(before, 0)).cause


def test_a_differing_key_factor_is_the_cause_even_if_the_folder_differs_too() -> None:
    found = cause({**KEY, f"{ENGINE}config": "other", FOLDER: "/new"}, {**KEY, FOLDER: "/old"})
    assert found != OTHER_FOLDER and "config" in found
    assert engine_component(found) == f"{ENGINE}config"


def test_another_folder_alone_is_the_cause() -> None:
    assert cause({FOLDER: "/new"}, {FOLDER: "/old"}) == OTHER_FOLDER


def test_with_the_same_folder_and_key_the_entry_was_missing() -> None:
    found = cause({**KEY, FOLDER: "/same"}, {**KEY, FOLDER: "/same"})
    assert found and found != OTHER_FOLDER


@pytest.mark.parametrize("name", sorted(KEY))
def test_each_cause_maps_to_its_component(name: str) -> None:
    first, last = engine_differences({**KEY, name: "new"}, KEY)
    assert [engine_component(words) for words in first + last] == [name]
