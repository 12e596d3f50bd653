"""A watched object behaves as the object: attributes, equality, classes and their hooks, copies,
pickles, and slots outside `__dict__`."""

from __future__ import annotations

import abc
import copy
import functools
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


class Model:
    """The job's own class."""

    def __init__(self, by: int = 2) -> None:
        self.by = by

    def __call__(self, x: int) -> int:
        return x * self.by


def test_attributes_are_shared(window: Window) -> None:
    model = Model()
    watched = compilewatch.watch(model)
    watched.by, model.note = 5, "new"
    assert (model.by, watched.note, watched(2)) == (5, "new", 10)
    del watched.note
    assert not hasattr(model, "note")
    assert (
        watched.__class__,
        type(watched).__name__,
        type(watched).__qualname__,
        watched.__doc__,
    ) == (
        Model,
        "Model",
        "Model",
        Model.__doc__,
    )


def test_a_watched_object_equals_its_target_and_itself_and_nothing_else(window: Window) -> None:
    model, other = Model(), Model()
    watched = compilewatch.watch(model)
    assert watched == model and model == watched and hash(watched) == hash(model)
    assert watched == compilewatch.watch(model, name="again") == compilewatch.watch(watched)
    assert watched != other and other != watched and watched != 3
    assert {model: 1}[watched] == 1 and watched in [model]


def test_the_jobs_own_equality_is_kept(window: Window) -> None:
    class Same(Model):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Same) and self.by == other.by

        __hash__ = None  # type: ignore[assignment]

    watched = compilewatch.watch(Same(3))
    assert watched == Same(3) and watched != Same(4)
    with pytest.raises(TypeError, match="unhashable"):
        hash(watched)


def test_the_target_lives_exactly_as_long_as_its_watched_object(window: Window) -> None:
    ended: list[str] = []

    class Finished(Model):
        def __del__(self) -> None:
            ended.append("del")

    model = Finished()
    watched, seen = compilewatch.watch(model), weakref.ref(model)
    weakref.finalize(model, ended.append, "finalize")
    del model
    assert (watched(2), ended, seen() is not None) == (4, [], True)
    mine = weakref.ref(watched)
    del watched
    assert (sorted(ended), seen(), mine()) == (["del", "finalize"], None, None)


def test_copies_are_watched_and_pickles_are_bare(window: Window) -> None:
    model = Model()
    model.__dict__["me"] = model
    watched = compilewatch.watch(model, name="model", items=lambda x: x)
    shallow, deep = copy.copy(watched), copy.deepcopy(watched)
    shallow.by, deep.by = 10, 100
    assert [watched(1), shallow(1), deep(1)] == [2, 10, 100]
    assert deep.me == deep and deep.me != watched
    stored = pickle.dumps([watched, model])
    loaded, same = pickle.loads(stored)
    assert type(loaded) is Model and loaded is same is loaded.me and b"compilewatch" not in stored
    [region] = window().regions
    assert (region.name, region.calls, region.items) == ("model", 3, 3.0)


def test_methods_that_create_objects_of_their_own_class_work(window: Window) -> None:
    class Cloning(Model):
        def again(self) -> Any:
            return type(self)(7), self.__class__(8), self.__new__(type(self))

    globals()["Cloning"] = Cloning
    Cloning.__qualname__ = "Cloning"
    first, second, third = compilewatch.watch(Cloning()).again()
    third.by = 9
    assert [one(1) for one in (first, second, third)] == [7, 8, 9]
    assert all(
        isinstance(one, Cloning) and one.__class__ is Cloning and one != first
        for one in (second, third)
    )
    assert [pickle.loads(pickle.dumps(one)).by for one in (first, second)] == [7, 8]
    assert [copy.copy(first).by, copy.deepcopy(first).by] == [7, 7]


def test_classes_with_special_rules_never_see_the_watched_class(window: Window) -> None:
    made: list[type] = []

    class Meta(abc.ABCMeta):
        def __new__(cls, *given: Any, **more: Any) -> Any:
            made.append(super().__new__(cls, *given, **more))
            return made[-1]

    class Registered(Model, metaclass=Meta):
        def __init_subclass__(cls, *, key: str) -> None:
            made.append(cls)

    watched = compilewatch.watch(Registered())
    assert watched(2) == 4 and isinstance(watched, Registered) and type(type(watched)) is Meta
    assert made == [Registered]


def test_slots_are_shared_too(window: Window) -> None:
    class Slotted:
        __slots__ = ("__dict__", "by")

        def __call__(self, x: int) -> int:
            return x * self.by

    model: Any = Slotted()
    model.by = 2
    watched = compilewatch.watch(model)
    watched.by = 3
    assert (watched(2), model.by, watched == model) == (6, 3, True)
    del model.by
    assert not hasattr(watched, "by")


def test_a_class_that_changes_stays_watched(window: Window) -> None:
    class Other(Model):
        def __call__(self, x: int) -> int:
            return -x

    model = Model()
    watched = compilewatch.watch(model, name="model")
    watched.__class__ = Other
    assert type(model) is Other and isinstance(watched, Other) and model(1) == -1
    watched(1)
    assert window().regions[0].calls == 1


def test_an_object_that_cannot_be_shared_is_not_changed(
    window: Window, capfd: pytest.CaptureFixture[str]
) -> None:
    class Table(dict[str, int]):
        def __call__(self, key: str) -> int:
            return self[key]

    table = Table(a=1)
    assert compilewatch.watch(table) is table
    assert "watch() cannot time an object of Table" in capfd.readouterr().err
    assert RECORDER.internal_error_count == 0


def test_a_cached_function_keeps_its_cache(window: Window) -> None:
    @compilewatch.watch
    @functools.lru_cache
    def square(x: int) -> int:
        return x * x

    assert [square(3), square(3), square.cache_info().hits] == [9, 9, 1]
    assert window().regions[0].calls == 2
