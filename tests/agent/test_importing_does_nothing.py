"""`import compilewatch` loads no torch, starts no thread and imports no network module."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import sys, threading, json
before = set(sys.modules)
import compilewatch
loaded = set(sys.modules) - before
print(json.dumps({"threads": threading.active_count(), "loaded": sorted(loaded), "hooks": len(sys.meta_path)}))
"""


def test_importing_starts_nothing_and_loads_almost_nothing() -> None:
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(len(sys.meta_path))"],
        capture_output=True,
        check=True,
        text=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True
    )
    found = json.loads(done.stdout)
    assert found["threads"] == 1
    assert found["hooks"] == int(bare.stdout)
    assert not {"torch", "socket", "http.client", "ssl", "json", "dataclasses"} & set(
        found["loaded"]
    )
    assert [name for name in found["loaded"] if name.startswith("compilewatch")] == ["compilewatch"]
