"""A job whose children, created in every way that Python offers, make watched calls; the job
reports the number of files that it still has open after them."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import compilewatch

CALLS = 7
call = compilewatch.watch(lambda: None, name="forward")


def calls(times: int = CALLS) -> None:
    """The work of each process."""
    for _ in range(times):
        call()


def child_work(_: int = 0) -> int:
    """Runs in a child that may know nothing of its parent's agent; returns the child's process
    id."""
    if not sys.argv[1].endswith("-fork"):
        compilewatch.init(model="m", interval=200)
    calls()
    return os.getpid()


def fork(deep: int) -> None:
    """A child, its child, and so on; each flushes at its end, and waits for its own child."""
    child = os.fork()
    if child == 0:
        calls()
        if deep > 1:
            fork(deep - 1)
        compilewatch.shutdown()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def nested(_: int) -> None:
    """Three generations."""
    fork(3)


def forked_and_gone(count: int) -> None:
    """Children that end with os._exit and report nothing."""
    for _ in range(count):
        child = os.fork()
        if child == 0:
            calls()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def processes(count: int) -> None:
    """`multiprocessing.Process`."""
    context = multiprocessing.get_context(sys.argv[1].split("-")[-1])
    children = [context.Process(target=child_work) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * count


def pool(count: int) -> None:
    """`multiprocessing.Pool`, closed and joined."""
    context = multiprocessing.get_context(sys.argv[1].split("-")[-1])
    barrier = context.Barrier(count)
    workers = context.Pool(count, initializer=_barrier_set, initargs=(barrier,))
    assert len(set(workers.map(_together, range(count), chunksize=1))) == count
    workers.close()
    workers.join()


def executor(count: int) -> None:
    """`concurrent.futures.ProcessPoolExecutor`."""
    context = multiprocessing.get_context(sys.argv[1].split("-")[-1])
    barrier = context.Barrier(count)
    with ProcessPoolExecutor(
        count, mp_context=context, initializer=_barrier_set, initargs=(barrier,)
    ) as workers:
        assert len(set(workers.map(_together, range(count)))) == count


def _barrier_set(barrier: multiprocessing.synchronize.Barrier) -> None:
    global _barrier
    _barrier = barrier


def _together(number: int) -> int:
    """Starts all children at once, so that each of them gets one piece of work."""
    _barrier.wait()
    return child_work(number)


def programs(count: int) -> None:
    """Programs that know nothing of the agent, started by posix_spawn, by vfork, and by a fork with
    a function that runs before the exec."""
    words = [sys.executable, "-c", "pass"]
    for _ in range(count):
        os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)
        subprocess.run(words, check=True)
        subprocess.run(words, check=True, preexec_fn=lambda: None)


KINDS = {
    "fork-nested": nested,
    "fork-exit": forked_and_gone,
    "programs": programs,
    **{
        f"{kind.__name__}-{how}": kind
        for kind in (processes, pool, executor)
        for how in ("fork", "spawn", "forkserver")
    },
}


def open_files() -> int:
    """The number of files that this process has open, without those that only wait to be
    collected."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


if __name__ == "__main__":
    compilewatch.init(model="m", interval=200)
    calls()
    before = open_files()
    KINDS[sys.argv[1]](int(sys.argv[2]))
    print(open_files() - before)
    calls()
