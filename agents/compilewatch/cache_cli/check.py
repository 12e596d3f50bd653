"""`compilewatch cache-check`: what a start of the model in this environment will miss in the compile caches, before it is deployed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from compilewatch.cache_cli.archive import file_read
from compilewatch.cache_cli.local_environment import (
    components_here,
    folder_here,
    key_parts_here,
    made_with,
)
from compilewatch.config import Config
from compilewatch.errors import AgentError
from compilewatch.runtime.private_files import FolderError
from compilewatch.sources.inductor.cache_key_diff import variable_of
from compilewatch.sources.inductor.cache_key_parts import KeyParts
from compilewatch.sources.inductor.run_history import DamagedRun, LastRun, Run
from compilewatch.wire.cache_miss_causes import (
    ACCESS,
    OPTIONS,
    READ_ONLY,
    VERSIONS,
    changed,
    option_words,
    variables_changed,
)

WARM, MISSES = 0, 1
_OPTION = f"{OPTIONS[0]}["
_BUILD, _SYSTEM = "torch_version", "system_info"


@dataclass
class Outlook:
    """What is known before a start; `--json` prints it."""

    against: str
    """What it was compared with."""
    misses: list[str] = field(default_factory=list)
    """What will certainly make compilations miss, in words, the most fundamental first."""
    possible: list[str] = field(default_factory=list)
    """What differs and may or may not."""
    unseen: list[str] = field(default_factory=list)
    """What cannot be seen without a run."""
    entries: int = 0
    """Entries of the caches that earlier runs asked for, as far as they are known."""
    present: int = 0
    """Those of them that the cache folder holds."""

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        if self.misses:
            return f"will miss: {self.misses[0]}" + (
                f" (and {len(self.misses) - 1} more)" if len(self.misses) > 1 else ""
            )
        return "nothing that can be seen here makes it miss" + (
            "; some things may" if self.possible else ""
        )


def run(model: str | None, file: str | None, as_json: bool) -> int:
    """Prints the outlook; answers 0 where nothing that can be seen will miss, 1 where something will. Raises an AgentError where there
    is nothing to compare with."""
    outlook = (
        _against_file(file)
        if file
        else _against_last_run(model or os.environ.get("COMPILEWATCH_MODEL", ""))
    )
    if as_json:
        print(json.dumps({**asdict(outlook), "answer": outlook.sentence}, indent=1))
    else:
        _print(outlook)
    return MISSES if outlook.misses else WARM


def _against_file(path: str) -> Outlook:
    made, _ = file_read(Path(path))
    outlook = Outlook(f"{path}, made with torch {made.made_with.get('torch', 'unknown')}")
    outlook.misses.extend(made.differences(made_with()))
    outlook.unseen.append("options and variables: the file does not tell them")
    return outlook


def _against_last_run(model: str) -> Outlook:
    if not model:
        raise AgentError(
            "cache-check needs the name of the model: --model NAME or COMPILEWATCH_MODEL"
        )
    try:
        earlier = LastRun.of(
            Config(model=model, endpoint="", spool=os.environ.get("COMPILEWATCH_SPOOL", ""))
        ).read()
    except (DamagedRun, FolderError) as error:
        raise AgentError(f"what the last run compiled cannot be read: {error}") from None
    except OSError as error:
        raise AgentError(
            f"what the last run compiled cannot be read: {error.strerror or error}"
        ) from None
    if earlier is None:
        raise AgentError(
            f"no earlier run of {model!r:.200} is known on this machine: there is nothing to compare with"
        )
    return outlook_of(model, earlier, components_here(), key_parts_here(), folder_here())


def outlook_of(
    model: str, earlier: Run, now: Mapping[str, str], parts: KeyParts | None, folder: str
) -> Outlook:
    """The outlook against earlier runs; `parts` is what torch puts into every key here, None where it does not tell."""
    before = earlier.components
    outlook = Outlook(f"the last run of {model} on this machine")
    outlook.misses.extend(
        f"{name} {before[name] or 'none'} -> {now[name] or 'none'}"
        for name in VERSIONS
        if _both_differ(name, now, before)
    )
    variables = variables_changed(now, before)
    if parts is None or not earlier.graphs:
        outlook.unseen.append(
            "torch's options: "
            + ("this torch does not tell them" if parts is None else "the last runs told none")
        )
    else:
        _keys(outlook, earlier, parts, variables)
    outlook.possible.extend(variables)
    _folder(outlook, earlier, folder)
    if now.get(ACCESS) == READ_ONLY:
        outlook.possible.append(
            f"cache folder {folder} cannot be written: what it does not hold is compiled again at every start"
        )
    outlook.unseen.append("the model's code: what it sets, and the graphs that it makes")
    return outlook


def _both_differ(name: str, now: Mapping[str, str], before: Mapping[str, str]) -> bool:
    return name in now and name in before and changed(name, now, before)


def _keys(outlook: Outlook, earlier: Run, parts: KeyParts, variables: list[str]) -> None:
    """What is in every key and is not as in those of the newest graph; variables that explain an option are named with it."""
    newest = list(earlier.graphs.values())[-1]
    if not outlook.misses and _both_differ(_BUILD, parts.own, newest.own):
        outlook.misses.append("torch: the same version, built from other sources")
    if not outlook.misses and any(
        _both_differ(name, parts.own, newest.own) for name in newest.own if name.startswith(_SYSTEM)
    ):
        outlook.misses.append("GPU or driver")
    for option in _options_differing(
        parts.settings, earlier.settings.get(newest.settings, {}), earlier.components
    ):
        variable = variable_of([option], variables)
        outlook.misses.append(
            option_words(f"{OPTIONS[0]} {option}") + (f" ({variable})" if variable else "")
        )
        variables[:] = [one for one in variables if one != variable]


def _options_differing(
    now: Mapping[str, str], before: Mapping[str, str], told: Mapping[str, str]
) -> Iterator[str]:
    """Options of inductor that are not as they were; not those that the last run's code had set, as code has not set them here yet."""
    for name in sorted(now):
        option = name.removeprefix(_OPTION).rstrip("]")
        if (
            name.startswith(_OPTION)
            and _both_differ(name, now, before)
            and f"{OPTIONS[0]} {option}" not in told
        ):
            yield option


def _folder(outlook: Outlook, earlier: Run, folder: str) -> None:
    """Whether the folder holds what earlier runs asked for."""
    found = [_holds(folder, key) for key in earlier.keys if key[:1] in ("f", "a")]
    outlook.entries, outlook.present = len(found), sum(found)
    if not found:
        outlook.unseen.append("the cache folder: the last runs told no keys")
    elif not outlook.present:
        outlook.misses.append(
            f"cache folder {folder} holds none of the {len(found)} entries that earlier runs asked for"
        )
    elif outlook.present < len(found):
        # Some may be of code that is not run any more.
        outlook.possible.append(
            f"cache folder {folder} lacks {len(found) - outlook.present} of the {len(found)} entries of earlier runs"
        )


def _holds(folder: str, key: str) -> bool:
    """Torch keeps a graph in `fxgraph/KE/KEY`, and what AOTAutograd made in `aotautograd/KEY`."""
    path = (
        Path(folder, "fxgraph", key[1:3], key)
        if key.startswith("f")
        else Path(folder, "aotautograd", key)
    )
    try:
        return any(not entry.name.startswith(".") for entry in path.iterdir())
    except (OSError, ValueError):
        return False


def _print(outlook: Outlook) -> None:
    print(f"{outlook.sentence}\n  compared with {outlook.against}")
    if outlook.entries:
        print(f"  in the cache folder: {outlook.present} of {outlook.entries} entries")
    for title, lines in (
        ("will miss", outlook.misses),
        ("may miss", outlook.possible),
        ("not seen", outlook.unseen),
    ):
        for line in lines:
            print(f"  {title}: {line}")
