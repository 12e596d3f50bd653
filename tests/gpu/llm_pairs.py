"""What the agent adds to a decode step of a small Llama that transformers compiles by itself: pairs of runs in turn, without and with it.

`python tests/gpu/llm_pairs.py [PAIRS] [SECONDS]` runs `programs/llm_decode.py` plainly and under `compilewatch run`, in a new order in
every pair. It prints each pair and the median over pairs of the difference, in percent, of the median, lowest tenth and mean step."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = str(HERE / "programs" / "llm_decode.py")
AGENT = ["-m", "compilewatch", "run", "--model", "llm", "--", "python", "-W", "ignore"]
FIGURES = ("median_ms", "tenth_ms", "mean_ms")


def run(words: list[str], seconds: str, cache: str) -> dict[str, float]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE.parents[1] / "agents"),
        "COMPILEWATCH_ENDPOINT": f"file:{cache}/reports.jsonl",
        "TORCHINDUCTOR_CACHE_DIR": cache,
    }
    done = subprocess.run([sys.executable, *words, PROGRAM, seconds], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    pairs, seconds = int("".join(sys.argv[1:2]) or 10), "".join(sys.argv[2:3]) or "6"
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as cache:
        run(["-W", "ignore"], "1", cache)  # fills the cache
        for _ in range(pairs):
            ways = [("plain", ["-W", "ignore"]), ("watched", AGENT)]
            random.shuffle(ways)
            took = {name: run(words, seconds, cache) for name, words in ways}
            found.append({name: 100 * (took["watched"][name] / took["plain"][name] - 1) for name in FIGURES})
            print(json.dumps({"plain": took["plain"], "watched": took["watched"]}), flush=True)
    print(json.dumps({name: round(statistics.median(one[name] for one in found), 3) for name in FIGURES}))


if __name__ == "__main__":
    main()
