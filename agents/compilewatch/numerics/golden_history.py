"""Golden history: norms and random projections of the results of earlier versions that passed.

A file next to the spool holds them. The values themselves are never stored."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
from compilewatch.wire.numerics import Last

SUFFIX = ".golden"
MAX_FILE_BYTES, MAX_FILES, MAX_BYTES = 1 << 20, 256, 16 << 20
MAX_VERSIONS, MAX_TENSORS = 4, 256
PROJECTIONS = 4
MIN_ELEMENTS = 64
"""Tensors with fewer elements are not stored: their projections would nearly reveal the values."""
MAX_SAMPLED_ELEMENTS = 4096
"""Elements of a weight or input tensor that are sampled, evenly spaced."""
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Summary:
    """One result: hardware, fingerprints of inputs and weights, and outlines of the outputs."""

    hardware: str
    inputs: list[float]
    weights: list[float]
    outputs: dict[str, list[float]]


def summarize(
    torch: Any,
    hardware: str,
    inputs: Iterable[Any],
    weights: Iterable[Any],
    outputs: Mapping[str, Any],
) -> Summary:
    """Summarizes a result for storage.

    A summary detects changes of shape and order. It misses changes below the tolerance, and changes
    orthogonal to all four random directions."""
    outlines = {
        place: _outline(torch, one)
        for place, one in list(outputs.items())[:MAX_TENSORS]
        if one.numel() >= MIN_ELEMENTS
    }
    return Summary(hardware, _fingerprint(torch, inputs), _fingerprint(torch, weights), outlines)


def compare_summaries(last: Summary, now: Summary, tolerance: float) -> tuple[Last, float | None]:
    """Compares two results; also estimates the largest relative change of a tensor."""
    if last.hardware != now.hardware:
        return "other hardware", None
    if not _near(last.inputs, now.inputs):
        return "other inputs", None
    if not _near(last.weights, now.weights):
        return "other weights", None
    if not now.outputs and not last.outputs:
        return "too small", None
    if last.outputs.keys() != now.outputs.keys():
        return "differs", None
    change = max(_change(last.outputs[place], one) for place, one in now.outputs.items())
    return ("same" if change <= tolerance else "differs"), change


class GoldenHistory:
    """The file of one golden batch of one model; the newest version comes last."""

    def __init__(self, folder: Path, model: str, name: str) -> None:
        self._folder = folder
        self._path = folder / (
            hashlib.sha256(f"{model}\n{name}".encode("utf-8", "replace")).hexdigest()[:24] + SUFFIX
        )

    @classmethod
    def open(cls, config: Config, name: str) -> GoldenHistory:
        """Opens the history; raises FolderError if there is no folder or the spool is off."""
        if config.spool == "off":
            raise FolderError("COMPILEWATCH_SPOOL is off")
        return cls(base_folder(config.spool) / "golden", config.model, name)

    def read(self) -> dict[str, Summary]:
        """Reads the summaries by version, oldest first; an unreadable file is treated as empty."""
        try:
            version, known = json.loads(file_read(self._path, MAX_FILE_BYTES))
            found = (
                {str(key): _summary(value) for key, value in known.items()}
                if version == _FORMAT
                else {}
            )
        except (
            OSError,
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            RecursionError,
            OverflowError,
        ):
            return {}
        return found

    def read_last(self, version: str) -> tuple[str, Summary] | None:
        """The newest version other than this one."""
        others = [pair for pair in self.read().items() if pair[0] != version]
        return others[-1] if others else None

    def write(self, version: str, summary: Summary) -> None:
        """Stores this version as the newest. Raises OSError."""
        known = {key: value for key, value in self.read().items() if key != version}
        known[version] = summary
        for oldest in list(known)[:-MAX_VERSIONS]:
            del known[oldest]
        folder_open(self._folder)
        rows = {
            key: [one.hardware, one.inputs, one.weights, one.outputs] for key, one in known.items()
        }
        file_replace(self._path, json.dumps([_FORMAT, rows], allow_nan=False).encode())
        folder_trim(self._folder, SUFFIX, MAX_FILES, MAX_BYTES)


def _summary(row: Any) -> Summary:
    hardware, inputs, weights, outputs = row
    return Summary(
        str(hardware),
        _numbers(inputs),
        _numbers(weights),
        {str(key): _numbers(one) for key, one in outputs.items()},
    )


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in values]


def _outline(torch: Any, tensor: Any) -> list[float]:
    """The norm, and projections on sign vectors that are the same in every process."""
    flat = torch.nan_to_num(tensor.detach().reshape(-1).to(torch.float64), 0.0, 0.0, 0.0)
    places = torch.arange(flat.numel(), device=flat.device)
    signs = [(((places + 1) * (2 * at + 1) * 40503) // 64 % 2) * 2 - 1 for at in range(PROJECTIONS)]
    return [_finite(float(flat.norm())), *(_finite(float((flat * sign).sum())) for sign in signs)]


def _fingerprint(torch: Any, tensors: Iterable[Any]) -> list[float]:
    """Fingerprints tensors: other weights or inputs give other numbers."""
    found = []
    for one in tensors:
        flat = one.detach().reshape(-1)
        few = flat[:: max(1, flat.numel() // MAX_SAMPLED_ELEMENTS)].to(torch.float64)
        phases = torch.cos(torch.arange(few.numel(), device=few.device, dtype=torch.float64))
        found.append(_finite(float((torch.nan_to_num(few, 0.0, 0.0, 0.0) * phases).sum())))
    total = math.fsum(found)
    weighted = math.fsum(value * math.cos(at) for at, value in enumerate(found))
    return [float(len(found)), _finite(total), _finite(weighted)]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _near(one: list[float], two: list[float]) -> bool:
    return len(one) == len(two) and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(one, two, strict=True)
    )


def _change(last: list[float], now: list[float]) -> float:
    """Estimates the relative change of a tensor.

    The change of a projection on random signs equals the norm of the change in quadratic mean."""
    projected = math.sqrt(
        math.fsum((a - b) ** 2 for a, b in zip(last[1:], now[1:], strict=True)) / PROJECTIONS
    )
    return max(abs(last[0] - now[0]), projected) / max(last[0], 1e-12)
