"""`compilewatch cache-check`: predicts, before a deployment, the cache misses of a start in this
environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from compilewatch.cache_cli.archive import file_read
from compilewatch.cache_cli.local_environment import (
    build_info,
    local_cache_folder,
    local_components,
    local_key_parts,
)
from compilewatch.config import Config
from compilewatch.errors import AgentError
from compilewatch.runtime.private_files import FolderError
from compilewatch.sources.inductor.cache_key_diff import variable_of
from compilewatch.sources.inductor.cache_key_parts import KeyParts
from compilewatch.sources.inductor.run_history import DamagedHistory, Run, RunHistory
from compilewatch.wire.cache_miss_causes import (
    ACCESS,
    OPTIONS,
    READ_ONLY,
    VERSIONS,
    changed_variables,
    is_changed,
    option_words,
)

EXIT_WARM, EXIT_MISSES = 0, 1
_OPTION = f"{OPTIONS[0]}["
_BUILD, _SYSTEM = "torch_version", "system_info"


@dataclass
class MissForecast:
    """The prediction; `--json` prints it."""

    against: str
    """The basis of the comparison."""
    misses: list[str] = field(default_factory=list)
    """Differences that certainly cause misses, in words, the most fundamental first."""
    possible: list[str] = field(default_factory=list)
    """Differences that may cause misses."""
    unseen: list[str] = field(default_factory=list)
    """Facts that only a run can show."""
    entries: int = 0
    """Number of cache entries that earlier runs looked up, as far as known."""
    present: int = 0
    """Number of these entries in the cache folder."""

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        if self.misses:
            return f"will miss: {self.misses[0]}" + (
                f" (and {len(self.misses) - 1} more)" if len(self.misses) > 1 else ""
            )
        return "no predictable misses" + ("; some misses are possible" if self.possible else "")


def run(model: str | None, file: str | None, as_json: bool) -> int:
    """Prints the prediction; returns 0 without and 1 with certain misses.

    Raises an AgentError if there is no basis for a comparison.
    """
    forecast = (
        _against_file(file)
        if file
        else _against_last_run(model or os.environ.get("COMPILEWATCH_MODEL", ""))
    )
    if as_json:
        print(json.dumps({**asdict(forecast), "answer": forecast.sentence}, indent=1))
    else:
        _print(forecast)
    return EXIT_MISSES if forecast.misses else EXIT_WARM


def _against_file(path: str) -> MissForecast:
    build, _ = file_read(Path(path))
    forecast = MissForecast(f"{path}, saved with torch {build.made_with.get('torch', 'unknown')}")
    forecast.misses.extend(build.differences(build_info()))
    forecast.unseen.append("options and variables: the file does not contain them")
    return forecast


def _against_last_run(model: str) -> MissForecast:
    if not model:
        raise AgentError(
            "cache-check needs the name of the model: --model NAME or COMPILEWATCH_MODEL"
        )
    try:
        earlier = RunHistory.open(
            Config(model=model, endpoint="", spool=os.environ.get("COMPILEWATCH_SPOOL", ""))
        ).read()
    except (DamagedHistory, FolderError) as error:
        raise AgentError(f"the history of the last run cannot be read: {error}") from None
    except OSError as error:
        raise AgentError(
            f"the history of the last run cannot be read: {error.strerror or error}"
        ) from None
    if earlier is None:
        raise AgentError(
            f"no earlier run of {model!r:.200} is known on this machine, so there is nothing "
            "to compare with"
        )
    return forecast_of(model, earlier, local_components(), local_key_parts(), local_cache_folder())


def forecast_of(
    model: str, earlier: Run, now: Mapping[str, str], parts: KeyParts | None, folder: str
) -> MissForecast:
    """Compares the present with earlier runs.

    `parts` are the key parts that torch uses for every graph; None if torch does not provide them.
    """
    before = earlier.components
    forecast = MissForecast(f"the last run of {model} on this machine")
    forecast.misses.extend(
        f"{name} {before[name] or 'none'} -> {now[name] or 'none'}"
        for name in VERSIONS
        if _is_different(name, now, before)
    )
    variables = changed_variables(now, before)
    if parts is None or not earlier.graphs:
        forecast.unseen.append(
            "torch's options: "
            + (
                "this torch does not provide them"
                if parts is None
                else "the last runs recorded none"
            )
        )
    else:
        _check_keys(forecast, earlier, parts, variables)
    forecast.possible.extend(variables)
    _check_folder(forecast, earlier, folder)
    if now.get(ACCESS) == READ_ONLY:
        forecast.possible.append(
            f"cache folder {folder} is not writable: missing entries are compiled again at "
            "every start"
        )
    forecast.unseen.append("the model's code: its own settings and its graphs")
    return forecast


def _is_different(name: str, now: Mapping[str, str], before: Mapping[str, str]) -> bool:
    return name in now and name in before and is_changed(name, now, before)


def _check_keys(
    forecast: MissForecast, earlier: Run, parts: KeyParts, variables: list[str]
) -> None:
    """Adds key parts that differ from those of the newest graph; an option is named with the
    variable that explains it.
    """
    newest = list(earlier.graphs.values())[-1]
    if not forecast.misses and _is_different(_BUILD, parts.own, newest.own):
        forecast.misses.append("torch: the same version, built from other sources")
    if not forecast.misses and any(
        _is_different(name, parts.own, newest.own)
        for name in newest.own
        if name.startswith(_SYSTEM)
    ):
        forecast.misses.append("GPU or driver")
    for option in _differing_options(
        parts.settings, earlier.settings.get(newest.settings, {}), earlier.components
    ):
        variable = variable_of([option], variables)
        forecast.misses.append(
            option_words(f"{OPTIONS[0]} {option}") + (f" ({variable})" if variable else "")
        )
        variables[:] = [name for name in variables if name != variable]


def _differing_options(
    now: Mapping[str, str], before: Mapping[str, str], own_settings: Mapping[str, str]
) -> Iterator[str]:
    """Yields the Inductor options that differ.

    Skips options that the last run's code had set, because no code has set them here yet.
    """
    for name in sorted(now):
        option = name.removeprefix(_OPTION).rstrip("]")
        if (
            name.startswith(_OPTION)
            and _is_different(name, now, before)
            and f"{OPTIONS[0]} {option}" not in own_settings
        ):
            yield option


def _check_folder(forecast: MissForecast, earlier: Run, folder: str) -> None:
    """Checks whether the folder holds the entries that earlier runs looked up."""
    is_present = [_holds(folder, key) for key in earlier.keys if key[:1] in ("f", "a")]
    forecast.entries, forecast.present = len(is_present), sum(is_present)
    if not is_present:
        forecast.unseen.append("the cache folder: the last runs recorded no keys")
    elif not forecast.present:
        forecast.misses.append(
            f"cache folder {folder} holds none of the {forecast.entries} entries that earlier runs "
            "looked up"
        )
    elif forecast.present < len(is_present):
        # Some entries may belong to code that no longer runs.
        forecast.possible.append(
            f"cache folder {folder} lacks {forecast.entries - forecast.present} of the "
            f"{forecast.entries} entries of earlier runs"
        )


def _holds(folder: str, key: str) -> bool:
    """Returns whether the folder holds the entry: `fxgraph/KE/KEY` for a graph, `aotautograd/KEY`
    for AOTAutograd.
    """
    path = (
        Path(folder, "fxgraph", key[1:3], key)
        if key.startswith("f")
        else Path(folder, "aotautograd", key)
    )
    try:
        return any(not entry.name.startswith(".") for entry in path.iterdir())
    except (OSError, ValueError):
        return False


def _print(forecast: MissForecast) -> None:
    print(f"{forecast.sentence}\n  compared with {forecast.against}")
    if forecast.entries:
        print(f"  in the cache folder: {forecast.present} of {forecast.entries} entries")
    for title, lines in (
        ("will miss", forecast.misses),
        ("may miss", forecast.possible),
        ("not checked", forecast.unseen),
    ):
        for line in lines:
            print(f"  {title}: {line}")
