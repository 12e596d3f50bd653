"""Strategies that generate any legal message of the wire."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from compilewatch.wire.ack import Ack
from compilewatch.wire.messages import MAX_REASON, MAX_TEXT, Compile, Request
from compilewatch.wire.sketch import Sketch
from hypothesis import strategies as st

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
text = st.text(characters, max_size=MAX_TEXT)
whole = st.integers(-(2**63) + 1, 2**63 - 1)
number = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | whole | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
KNOWN: dict[Any, st.SearchStrategy[Any]] = {
    int: whole,
    float: number,
    str: text,
    bool: st.booleans(),
    Any: plain,
    Sketch: st.lists(st.floats(0.0, 1e9), max_size=20).map(Sketch.of),
}


def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type may hold."""
    if hint in KNOWN:
        return KNOWN[hint]
    if dataclasses.is_dataclass(hint):
        return message(typing.cast(type, hint))
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return st.one_of([st.none() if arg is type(None) else strategy(arg) for arg in args])
    if origin is list:
        return st.lists(strategy(args[0]), max_size=2)
    if origin is tuple:
        return st.tuples(*map(strategy, args))
    return st.dictionaries(text, strategy(args[1]), max_size=2)


def message(cls: type) -> st.SearchStrategy[Any]:
    """Any message of the class, each of its fields given."""
    fields = {name: strategy(hint) for name, hint in typing.get_type_hints(cls).items()}
    if cls is Compile:
        fields["reason"] = st.text(characters, max_size=MAX_REASON)
    return st.builds(cls, **fields)


requests = message(Request)
acks = message(Ack)
