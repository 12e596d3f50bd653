"""Crash points: when a process of a test ends itself."""

from __future__ import annotations


class Nth:
    """`name:n`: the n-th time that this process passes the point; an empty text means never."""

    def __init__(self, wanted: str) -> None:
        self._name, _, count = wanted.partition(":")
        self._left = int(count or 1)

    def __call__(self, name: str) -> bool:
        self._left -= name == self._name
        return name == self._name and self._left == 0
