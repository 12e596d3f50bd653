"""What the last runs of a model on this host compiled, and with which configuration: hashes alone, in a file beside the spool."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilewatch.config import Config
from compilewatch.identity.sha256 import sha256_hex
from compilewatch.runtime.private_files import (
    FolderError,
    base_folder,
    file_read,
    file_replace,
    folder_open,
    folder_trim,
)

SUFFIX = ".run"
MAX_FILE_BYTES, MAX_READ_BYTES = 1 << 20, 8 << 20
MAX_FILES, MAX_BYTES = 64, 16 << 20
MAX_GRAPHS, MAX_KEYS, MAX_SETTINGS, MAX_PARTS = 300, 1000, 6, 32
_FORMAT = 1


class DamagedRun(ValueError):
    """The file is not one that an agent of this version wrote."""


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph that inductor was asked for, as torch's hashes describe it."""

    frame: str
    """File and function."""
    backward: bool
    key: str
    settings: str
    own: dict[str, str]
    components: dict[str, str]
    """What the process was configured with that compiled it."""

    @property
    def place(self) -> tuple[str, bool]:
        """What a graph of another run has in common with it, if it is the same one."""
        return self.frame, self.backward


@dataclass(slots=True)
class Run:
    """What runs of a model compiled; the newest knowledge wins."""

    components: dict[str, str] = field(default_factory=dict)
    """What the last one was configured with."""
    graphs: dict[str, Graph] = field(default_factory=dict)
    """By key."""
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    """Keys that the caches were asked for and must hold now, the oldest first."""
    engine: dict[str, dict[str, str]] = field(default_factory=dict)
    """The factors of vLLM's own key, by rank and part of the model."""

    def add(self, graph: Graph, settings: Mapping[str, str]) -> None:
        """Notes a graph; the oldest make room."""
        self.graphs.pop(graph.key, None)
        self.graphs[graph.key] = graph
        self.settings[graph.settings] = dict(settings)
        _keep_newest(self.graphs, MAX_GRAPHS)

    def asked(self, key: str) -> None:
        """Notes a key that a cache was asked for."""
        self.keys.pop(key, None)
        self.keys[key] = None
        _keep_newest(self.keys, MAX_KEYS)

    def merge(self, newer: Run) -> None:
        """Takes over what a newer run knows."""
        self.components = newer.components
        for part, factors in newer.engine.items():
            self.engine.pop(part, None)
            self.engine[part] = factors
        _keep_newest(self.engine, MAX_PARTS)
        for graph in newer.graphs.values():
            self.add(graph, newer.settings.get(graph.settings, {}))
        for key in newer.keys:
            self.asked(key)
        used = list(dict.fromkeys(graph.settings for graph in reversed(self.graphs.values())))[
            :MAX_SETTINGS
        ]
        self.graphs = {key: graph for key, graph in self.graphs.items() if graph.settings in used}
        self.settings = {id: self.settings[id] for id in used}


def _keep_newest(entries: dict[str, Any], most: int) -> None:
    while len(entries) > most:
        entries.pop(next(iter(entries)))


class LastRun:
    """The file of one model. Ranks and replicas of a host share it: what one of them wrote while another one read is lost, and costs
    that a cause is not known later."""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._path = folder / (sha256_hex(model.encode("utf-8", "replace"))[:24] + SUFFIX)

    @classmethod
    def of(cls, config: Config) -> LastRun:
        """The file of the configured model; raises a FolderError where no folder can be had, or none is wanted."""
        if config.spool == "off":
            raise FolderError("COMPILEWATCH_SPOOL is off")
        return cls(base_folder(config.spool) / "runs", config.model)

    def read(self) -> Run | None:
        """What is known; None if nothing is. Raises a DamagedRun, and removes the file, if it cannot be read as what it should be."""
        try:
            packed = file_read(self._path, MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
        try:
            return _run_read(packed)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, zlib.error):
            self._path.unlink(missing_ok=True)
            raise DamagedRun("the file of the last run was damaged, and is removed") from None

    def write(self, run: Run) -> None:
        """Adds this run to what is known. Raises OSError."""
        folder_open(self._folder)
        try:
            known = self.read() or Run()
        except DamagedRun:
            known = Run()
        known.merge(run)
        file_replace(self._path, _run_packed(known))
        folder_trim(self._folder, SUFFIX, MAX_FILES, MAX_BYTES)


def _run_packed(run: Run) -> bytes:
    tables: list[dict[str, str]] = [run.components]
    graphs = []
    for graph in run.graphs.values():
        if graph.components not in tables:
            tables.append(graph.components)
        graphs.append(
            [
                graph.frame,
                graph.backward,
                graph.key,
                graph.settings,
                graph.own,
                tables.index(graph.components),
            ]
        )
    data = [_FORMAT, tables, graphs, run.settings, list(run.keys), run.engine]
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 6)


def _run_read(packed: bytes) -> Run:
    stream = zlib.decompressobj()
    text = stream.decompress(packed, MAX_READ_BYTES)
    if not stream.eof:
        raise DamagedRun("cut")
    version, tables, graphs, settings, keys, *more = json.loads(text)
    if version != _FORMAT:
        raise DamagedRun("another format")
    tables = [_texts(table) for table in tables]
    run = Run(
        tables[0],
        {},
        {str(id): _texts(hashes) for id, hashes in settings.items()},
        dict.fromkeys(map(str, keys)),
    )
    run.engine = {
        str(part): _texts(factors) for engine in more[:1] for part, factors in engine.items()
    }
    for frame, backward, key, settings_id, own, table in graphs:
        run.graphs[str(key)] = Graph(
            str(frame), bool(backward), str(key), str(settings_id), _texts(own), tables[table]
        )
    return run


def _texts(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        raise DamagedRun("no table")
    return {str(name): str(value) for name, value in found.items()}
