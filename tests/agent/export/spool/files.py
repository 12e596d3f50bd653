"""Windows, spools and the content of their files, for the tests of the spool."""

from __future__ import annotations

from pathlib import Path

from compilewatch.config import Config
from compilewatch.export.outbox import Entry, Outbox
from compilewatch.export.spool.format import read_contents, read_windows
from compilewatch.export.spool.spool import Spool, project_of
from compilewatch.wire.messages import Identity, Region, Report

ENDPOINT, KEY = "http://127.0.0.1:9", "cw_ing_test"


def config(folder: Path | str, **changes: str) -> Config:
    """Settings whose spool is in the folder."""
    return Config(
        **{"model": "m", "endpoint": ENDPOINT, "api_key": KEY, "spool": str(folder), **changes}
    )  # type: ignore[arg-type]


def identity(name: str = "a") -> Identity:
    """An instance whose id is this letter, repeated."""
    return Identity(name * 26, 1.0, "ranker", "7", host="there", torch="2.11.0")


def window(seq: int, calls: int = 3, text: str = "") -> Report:
    """A window of 10 s; `text` makes it large."""
    return Report((seq, seq), (seq * 10.0, seq * 10.0 + 10.0), [Region("forward" + text, calls)])


class Kept:
    """An outbox with its spool, as an instance has them."""

    def __init__(self, folder: Path | str, name: str = "a", **changes: str) -> None:
        self.settings = config(folder, **changes)
        self.now = 1000.0
        self.identity = identity(name)
        self.outbox = Outbox()
        self.spool = Spool(self.settings, self.identity, lambda: self.now)

    def close(self, seq: int, calls: int = 3, text: str = "") -> None:
        """Closes a window."""
        self.spool.store(self.outbox.add(window(seq, calls, text)), self.outbox.pending)

    def acknowledge(self, first: int, last: int) -> None:
        """Acknowledges these windows as the dashboard does."""
        self.outbox.next_batch(last - first + 1)
        self.outbox.acknowledge([(first, last)])
        self.spool.update_pending(self.outbox.pending())

    @property
    def path(self) -> Path:
        """The spool file."""
        folder = Path(self.settings.spool)
        return next(
            folder.glob(f"compilewatch-*/{project_of(self.settings)}-{self.identity.id}.spool")
        )


def on_disk(path: Path) -> list[Entry]:
    """The windows that a later process would send."""
    with path.open("rb") as file:
        return list(read_windows(file, read_contents(file).watermark))


def seqs(path: Path) -> list[tuple[int, int]]:
    """The ranges of those windows."""
    return [entry.seq for entry in on_disk(path)]
