"""The write lock passes from writer to writer in the order of requests; its holder may acquire it
again."""

import time
from threading import Barrier, Thread

from dashboard.common.write_lock import FifoLock


def test_writers_are_served_in_order() -> None:
    lock, order = FifoLock(), list[int]()

    def work(number: int) -> None:
        lock.acquire()
        order.append(number)
        lock.release()

    lock.acquire()
    threads = []
    for number in range(12):
        thread = Thread(target=work, args=(number,))
        thread.start()
        threads.append(thread)
        while len(lock._waiting) <= number:
            time.sleep(0.001)
    assert order == []
    lock.release()
    for thread in threads:
        thread.join(timeout=60)
    assert order == list(range(12))


def test_the_lock_is_exclusive_and_reentrant() -> None:
    lock, inside, most, barrier = FifoLock(), [0], [0], Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(200):
            lock.acquire()
            lock.acquire()
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            lock.release()
            inside[0] -= 1
            lock.release()

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert most == [1] and inside == [0] and lock._owner is None
