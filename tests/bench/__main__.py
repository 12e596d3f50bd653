"""`make bench`: every benchmark in turn, each in a process of its own, each beside its peer."""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    failed = []
    for file in sorted(Path(__file__).parent.glob("bench_*.py")):
        print(f"\n== {file.stem.removeprefix('bench_')}", flush=True)
        if subprocess.run([sys.executable, "-m", f"tests.bench.{file.stem}"]).returncode:
            failed.append(file.stem)
    if failed:
        print(f"\nended with an error: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
