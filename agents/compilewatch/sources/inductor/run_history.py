"""Run history: graphs and configuration of a model's last runs on this host.

A file next to the spool holds hashes only."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilewatch.config import Config
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


class DamagedHistory(ValueError):
    """The file is damaged or has another format."""


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph that inductor compiled or looked up, described by torch's hashes."""

    frame: str
    """File and function."""
    backward: bool
    key: str
    settings: str
    own: dict[str, str]
    components: dict[str, str]
    """Configuration of the process that compiled the graph."""

    @property
    def place(self) -> tuple[str, bool]:
        """Identity across runs: equal for the same graph in another run."""
        return self.frame, self.backward


@dataclass(slots=True)
class Run:
    """Merged history of a model's runs; the newest entry wins."""

    components: dict[str, str] = field(default_factory=dict)
    """Configuration of the last run."""
    graphs: dict[str, Graph] = field(default_factory=dict)
    """Graphs by key."""
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    """Keys that were looked up, so the caches hold them now; oldest first."""
    engine: dict[str, dict[str, str]] = field(default_factory=dict)
    """Factors of vLLM's own cache key, by rank and part of the model."""

    def add(self, graph: Graph, settings: Mapping[str, str]) -> None:
        """Adds a graph and drops the oldest ones beyond `MAX_GRAPHS`."""
        self.graphs.pop(graph.key, None)
        self.graphs[graph.key] = graph
        self.settings[graph.settings] = dict(settings)
        _keep_newest(self.graphs, MAX_GRAPHS)

    def add_key(self, key: str) -> None:
        """Adds a key that was looked up."""
        self.keys.pop(key, None)
        self.keys[key] = None
        _keep_newest(self.keys, MAX_KEYS)

    def merge(self, newer: Run) -> None:
        """Merges a newer run into this one."""
        self.components = newer.components
        for part, factors in newer.engine.items():
            self.engine.pop(part, None)
            self.engine[part] = factors
        _keep_newest(self.engine, MAX_PARTS)
        for graph in newer.graphs.values():
            self.add(graph, newer.settings.get(graph.settings, {}))
        for key in newer.keys:
            self.add_key(key)
        used = list(dict.fromkeys(graph.settings for graph in reversed(self.graphs.values())))[
            :MAX_SETTINGS
        ]
        self.graphs = {key: graph for key, graph in self.graphs.items() if graph.settings in used}
        self.settings = {id: self.settings[id] for id in used}


def _keep_newest(entries: dict[str, Any], most: int) -> None:
    while len(entries) > most:
        entries.pop(next(iter(entries)))


class RunHistory:
    """The history file of one model, shared by the ranks and replicas of a host.

    Concurrent writers may lose entries of each other; a later miss then has no known cause."""

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        digest = hashlib.sha256(model.encode("utf-8", "replace")).hexdigest()
        self._path = folder / (digest[:24] + SUFFIX)

    @classmethod
    def open(cls, config: Config) -> RunHistory:
        """Opens the model's file; raises FolderError if no folder is available or wanted."""
        if config.spool == "off":
            raise FolderError("COMPILEWATCH_SPOOL is off")
        return cls(base_folder(config.spool) / "runs", config.model)

    def read(self) -> Run | None:
        """Reads the history, or None without a file. Removes a damaged file: DamagedHistory."""
        try:
            packed = file_read(self._path, MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
        try:
            return _unpack_run(packed)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, zlib.error):
            self._path.unlink(missing_ok=True)
            raise DamagedHistory(
                "the history file of the last run was damaged and was removed"
            ) from None

    def write(self, run: Run) -> None:
        """Merges this run into the file. Raises OSError."""
        folder_open(self._folder)
        try:
            known = self.read() or Run()
        except DamagedHistory:
            known = Run()
        known.merge(run)
        file_replace(self._path, _pack_run(known))
        folder_trim(self._folder, SUFFIX, MAX_FILES, MAX_BYTES)


def _pack_run(run: Run) -> bytes:
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


def _unpack_run(packed: bytes) -> Run:
    stream = zlib.decompressobj()
    text = stream.decompress(packed, MAX_READ_BYTES)
    if not stream.eof:
        raise DamagedHistory("truncated")
    version, tables, graphs, settings, keys, *more = json.loads(text)
    if version != _FORMAT:
        raise DamagedHistory("unknown format")
    tables = [_read_texts(table) for table in tables]
    run = Run(
        tables[0],
        {},
        {str(id): _read_texts(hashes) for id, hashes in settings.items()},
        dict.fromkeys(map(str, keys)),
    )
    run.engine = {
        str(part): _read_texts(factors) for engine in more[:1] for part, factors in engine.items()
    }
    for frame, backward, key, settings_id, own, table in graphs:
        run.graphs[str(key)] = Graph(
            str(frame), bool(backward), str(key), str(settings_id), _read_texts(own), tables[table]
        )
    return run


def _read_texts(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        raise DamagedHistory("not a table")
    return {str(name): str(value) for name, value in found.items()}
