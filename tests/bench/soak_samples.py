"""The samples of a soak, one per minute: processes, tables, Redis, spools; one line of JSON
each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import redis

from tests.bench.soak_held import held
from tests.bench.soak_line import SoakLine

MIB = 1 << 20
TABLES = """
SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass::text, count(*), sum(pg_total_relation_size(c.oid))::bigint,
       sum(s.n_live_tup)::bigint, sum(s.n_dead_tup)::bigint
FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid WHERE c.relkind = 'r' GROUP BY 1
"""


def processes(group: list[psutil.Process]) -> dict[str, float]:
    """Totals of a process and its children: MiB, descriptors, threads, processor seconds, and the
    number of processes."""
    found = {"rss": 0.0, "descriptors": 0.0, "threads": 0.0, "processor": 0.0, "count": 0.0}
    for one in group:
        try:
            with one.oneshot():
                times = one.cpu_times()
                found["rss"] += one.memory_info().rss / MIB
                found["descriptors"] += one.num_fds()
                found["threads"] += one.num_threads()
                found["processor"] += times.user + times.system
                found["count"] += 1
        except psutil.Error:
            continue
    return found


def anonymous(pid: int) -> float:
    """Anonymous memory of a process in MiB. Pages shared by forks count proportionally; the
    resident memory of a child includes pages of its parent."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return (
        float(next(line.split()[1] for line in text.splitlines() if line.startswith("Pss_Anon:")))
        / 1024
    )


def tree(pid: int, folder: Path) -> dict[str, Any]:
    """The same totals of one process and its children, with its PID: a restarted process has a new
    PID. Also the memory of the first process alone, and PID, age in seconds and memory of each
    child, since a worker's child is replaced while its parent remains. `folder` contains the block
    counts that the servers write; they are returned in thousands."""
    try:
        head = psutil.Process(pid)
        children = head.children(recursive=True)
        lives = [
            [child.pid, time.time() - child.create_time(), child.memory_info().rss / MIB]
            for child in children
        ]
        found = {
            **processes([head, *children]),
            "pid": pid,
            "age": time.time() - head.create_time(),
        }
        found["own"] = sum(anonymous(one.pid) for one in (head, *children))
        in_use = sum(held(folder, one.pid) for one in (head, *children)) / 1000
        return {**found, "first": head.memory_info().rss / MIB, "in use": in_use, "children": lives}
    except (psutil.Error, OSError):
        return {}


def look(line: SoakLine, jobs: dict[str, int]) -> dict[str, Any]:
    """One sample."""
    database = [
        one
        for one in psutil.process_iter(["name", "cmdline"])
        if f" {line.name} " in " ".join(one.info["cmdline"] or ())
    ]
    tables = {name: [int(part) for part in parts] for name, *parts in line.rows(TABLES)}
    assert line.redis is not None
    with redis.Redis.from_url(line.redis.url, socket_timeout=5) as connection:
        memory, keys = connection.info("memory")["used_memory"] / MIB, connection.dbsize()
    spools = [file.stat().st_size for file in (line.folder / "spools").rglob("*") if file.is_file()]
    [[size]] = line.rows("SELECT pg_database_size(current_database())")
    [[inbox]] = line.rows("SELECT count(*) FROM ingest_inbox")
    return {
        "servers": {
            role: tree(process.pid, line.held) for role, process in dict(line.processes).items()
        },
        "jobs": {name: tree(pid, line.held) for name, pid in jobs.items()},
        "sessions": processes(
            [one for one in database if (one.info["name"] or "").startswith("postgres")]
        ),
        "tables": tables,
        "database": size / MIB,
        "redis": memory,
        "redis_keys": keys,
        "spool": sum(spools) / MIB,
        "spools": len(spools),
        "inbox": inbox,
        "logs": sum(file.stat().st_size for file in line.folder.glob("*.log")) / MIB,
    }


def folder_of(path: Path) -> Path:
    """The folder, created if it is missing."""
    path.mkdir(parents=True, exist_ok=True)
    return path
