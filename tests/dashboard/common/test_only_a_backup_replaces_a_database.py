"""`manage.py restore` checks a file before it changes anything, and explains in a sentence why it
refuses the file."""

from __future__ import annotations

import gzip
import io
import os
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.flow.stack import REPOSITORY

PAGE = 4096
Attack = Callable[[Path], None]


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        for statement in statements:
            opened.execute(statement)


def made(path: Path, *statements: str) -> Path:
    """A small database of the dashboard plus the results of the statements."""
    known = (
        ("auth", "0001_initial"),
        ("ingest", "0001_initial"),
        ("an_app_of_earlier_days", "0001_initial"),
    )
    tables = (
        "CREATE TABLE word (word text)",
        "CREATE TABLE django_migrations (id integer PRIMARY KEY, app text, name text)",
    )
    sql(
        path,
        *tables,
        *(
            f"INSERT INTO django_migrations (app, name) VALUES ('{app}', '{name}')"
            for app, name in known
        ),
    )
    sql(
        path,
        "INSERT INTO word VALUES ('restored')",
        "CREATE INDEX of_words ON word (word)",
        *statements,
    )
    return path


def patched(path: Path, offset: int, value: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(value)] = value
    path.write_bytes(content)


def with_sql(*statements: str) -> Attack:
    def attack(path: Path) -> None:
        made(path, *statements)

    return attack


def with_bytes(offset: int, value: bytes) -> Attack:
    def attack(path: Path) -> None:
        made(path)
        patched(path, offset, value)

    return attack


def cut_to(share: float) -> Attack:
    """The beginning of a backup, in whole pages."""

    def attack(path: Path) -> None:
        made(path, "INSERT INTO word VALUES (zeroblob(100000))")
        os.truncate(path, int(path.stat().st_size * share) // PAGE * PAGE)

    return attack


def written(content: bytes) -> Attack:
    def attack(path: Path) -> None:
        path.write_bytes(content)

    return attack


def of_another_kind(path: Path) -> None:
    sql(path, "CREATE TABLE moz_places (url text)")


def of_another_django(path: Path) -> None:
    sql(path, "CREATE TABLE django_migrations (id integer PRIMARY KEY, app text, name text)")
    sql(path, "INSERT INTO django_migrations (app, name) VALUES ('auth', '0001_initial')")


def huge_and_sparse(path: Path) -> None:
    """A sparse file larger than any disk here; its header matches its size."""
    made(path)
    pages = (1 << 43) // PAGE
    patched(path, 28, pages.to_bytes(4))
    os.truncate(path, pages * PAGE)


def an_index_without_its_rows(path: Path) -> None:
    """Twenty rows that the index does not contain: the database has many errors."""
    made(path, "CREATE INDEX empty ON word (word) WHERE word = 'never'")
    sql(path, *(f"INSERT INTO word VALUES ('{number}')" for number in range(20)))
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA writable_schema = ON")
        opened.execute(
            "UPDATE sqlite_master SET sql = 'CREATE INDEX empty ON word (word)' WHERE name "
            "= 'empty'"
        )


def disguised(path: Path) -> None:
    """A trigger that the schema table lists as a table."""
    made(path, "CREATE TRIGGER thief AFTER INSERT ON word BEGIN DELETE FROM word; END")
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA writable_schema = ON")
        opened.execute("UPDATE sqlite_master SET type = 'table' WHERE name = 'thief'")


def tar_that_climbs(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for name in ("../../compilewatch.sqlite3", "/tmp/compilewatch.sqlite3"):
            entry = tarfile.TarInfo(name)
            entry.size = 6
            archive.addfile(entry, io.BytesIO(b"escape"))


ATTACKS: dict[str, tuple[Attack, str]] = {
    "nothing": (written(b""), "is not a SQLite database"),
    "garbage": (written(b"no database at all" * 1000), "is not a SQLite database"),
    "a decompression bomb": (written(gzip.compress(bytes(1 << 24))), "is not a SQLite database"),
    "an archive that climbs": (tar_that_climbs, "is not a SQLite database"),
    "a dump with a command for a shell": (
        written(b"\\! touch /tmp/owned\nDROP TABLE word;\n" * 9),
        "is not a SQLite database",
    ),
    "only a header": (written(b"SQLite format 3\0"), "is not a SQLite database"),
    "cut to a half": (cut_to(0.5), "is damaged: its header states"),
    "cut to a page": (cut_to(0.05), "is damaged: its header states"),
    "a header with too large a size": (
        with_bytes(28, b"\0\0\xff\xff"),
        "is damaged: its header states 268431360 bytes, but the file has",
    ),
    "a header with too small a size": (
        with_bytes(28, b"\0\0\0\1"),
        "is damaged: its header states 4096 bytes, but the file has",
    ),
    "a header with a page size of zero": (
        with_bytes(16, b"\0\0"),
        "is damaged: its header states 0 bytes",
    ),
    "huge and sparse": (huge_and_sparse, "has 8796093022208 bytes, but the disk of"),
    "a page of something else": (with_bytes(PAGE, b"\xff" * PAGE), "is damaged: "),
    "an index without its rows": (an_index_without_its_rows, "is damaged: "),
    "another program's": (
        of_another_kind,
        "is not a compilewatch database: it has no table django_migrations",
    ),
    "another Django's": (
        of_another_django,
        "is not a compilewatch database: it has no migrations of the report inbox",
    ),
    "of a later release": (
        with_sql(
            "INSERT INTO django_migrations (app, name) VALUES ('fleet', '9999_from_the_future')"
        ),
        "is from a later release, which has the migration fleet.9999_from_the_future: "
        "install that release first",
    ),
    "a trigger": (
        with_sql("CREATE TRIGGER thief AFTER INSERT ON word BEGIN DELETE FROM word; END"),
        "holds the trigger thief, which no",
    ),
    "a view": (
        with_sql('CREATE VIEW "two\nlines" AS SELECT * FROM word'),
        "holds the view two<U+000A>lines, which no backup",
    ),
    "a virtual table": (
        with_sql("CREATE VIRTUAL TABLE found USING fts5(word)"),
        "holds the virtual table found, which no backup",
    ),
    "a disguised trigger": (disguised, "is damaged: malformed database schema"),
}


def restored(folder: Path, backup: Path) -> subprocess.CompletedProcess[str]:
    """A restore that may write at most 128 MiB to a file: a wrongly accepted huge file does not
    fill the disk."""
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    command = [
        "prlimit",
        f"--fsize={1 << 27}",
        sys.executable,
        "manage.py",
        "restore",
        str(backup),
        "--wait",
        "0",
    ]
    environment = plain | {"COMPILEWATCH_DATA": str(folder)}
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def words_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as opened:
        return [word for (word,) in opened.execute("SELECT word FROM word ORDER BY rowid")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The database of a stopped dashboard, and the copy that an earlier restore kept."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/compilewatch.sqlite3.before-restore").write_bytes(b"kept earlier")
    path = tmp_path / "data/compilewatch.sqlite3"
    sql(path, "CREATE TABLE word (word text)", "INSERT INTO word VALUES ('before')")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.glob("compilewatch.*")}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_invalid_backup_changes_nothing(name: str, place: Path, tmp_path: Path) -> None:
    attack, sentence = ATTACKS[name]
    attack(tmp_path / "backup")
    before = contents(place.parent)
    refused = restored(place.parent, tmp_path / "backup")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1), (
        refused.stderr
    )
    assert f"{tmp_path / 'backup'} {sentence}" in refused.stderr
    assert refused.stderr.endswith(" Nothing was changed.\n")
    assert contents(place.parent) == before


def test_a_missing_file_changes_nothing(place: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    before = contents(place.parent)
    for name in ("pipe", "circle", "none", "data"):
        refused = restored(place.parent, tmp_path / name)
        assert (refused.returncode, refused.stderr) == (
            1,
            f"CommandError: There is no backup {tmp_path / name}.\n",
        )
    assert contents(place.parent) == before


def test_a_restore_refuses_the_database_and_its_own_copy_as_a_backup(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "another name").symlink_to(place)
    made(place.with_name(f"{place.name}.restoring"))
    before = contents(place.parent)
    for path, said in (
        (tmp_path / "another name", "is the database itself"),
        (
            place.with_name(f"{place.name}.restoring"),
            "is the path of restore's temporary copy: rename the backup",
        ),
    ):
        refused = restored(place.parent, path)
        assert (refused.returncode, refused.stderr) == (
            1,
            f"CommandError: {path} {said}. Nothing was changed.\n",
        )
    assert contents(place.parent) == before


def test_a_planted_log_next_to_the_copy_is_not_replayed(place: Path, tmp_path: Path) -> None:
    backup = made(tmp_path / "backup", "PRAGMA journal_mode = WAL")
    (tmp_path / "aside").mkdir()
    other = tmp_path / "aside/backup"
    other.write_bytes(backup.read_bytes())
    with closing(sqlite3.connect(other, isolation_level=None)) as opened:
        opened.execute("PRAGMA wal_autocheckpoint = 0")
        opened.execute("INSERT INTO word VALUES ('of an attacker')")
        place.with_name(f"{place.name}.restoring-wal").write_bytes(
            (tmp_path / "aside/backup-wal").read_bytes()
        )
    done = restored(place.parent, backup)
    assert done.returncode == 0, done.stderr
    assert words_of(place) == ["restored"]


def test_the_kept_copy_can_be_restored(place: Path, tmp_path: Path) -> None:
    place.unlink()
    made(place, "UPDATE word SET word = 'first'")
    kept = place.with_name(f"{place.name}.before-restore")
    assert restored(place.parent, made(tmp_path / "backup")).returncode == 0
    assert (words_of(place), words_of(kept)) == (["restored"], ["first"])
    assert restored(place.parent, kept).returncode == 0
    assert (words_of(place), words_of(kept)) == (["first"], ["restored"])
