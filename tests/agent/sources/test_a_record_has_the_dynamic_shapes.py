"""A record of a trace holds torch's settings at the time of the call; `dynamic` is read from these
settings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from compilewatch.sources.dynamo.compile_options import UNKNOWN_OPTIONS, options_of_record


@pytest.mark.parametrize(
    ("settings", "dynamic"),
    [
        ('{"assume_static_by_default": false, "automatic_dynamic_shapes": true}', "yes"),
        ('{"assume_static_by_default": true, "automatic_dynamic_shapes": true}', "automatic"),
        ('{"assume_static_by_default": true, "automatic_dynamic_shapes": false}', "no"),
    ],
)
def test_a_record_gives_whether_shapes_were_dynamic(settings: str, dynamic: str) -> None:
    assert options_of_record(SimpleNamespace(dynamo_config=settings)).dynamic == dynamic


@pytest.mark.parametrize("settings", ["", "[]", "{", '{"automatic_dynamic_shapes": 3}', None, 7])
def test_settings_in_another_form_give_no_answer(settings: object) -> None:
    assert options_of_record(SimpleNamespace(dynamo_config=settings)) == UNKNOWN_OPTIONS
