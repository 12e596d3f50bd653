"""Files of killed jobs, each corrupted in another way: no error is raised, no unrecorded data is
sent, and no file remains."""

from __future__ import annotations

import random
from pathlib import Path

from compilewatch.export.spool.recovery import SpoolRecovery

from tests.agent.export.spool.collector import Collector
from tests.agent.export.spool.files import Kept, config
from tests.faults.results import AddResult
from tests.faults.size import sized

WINDOWS = 6


def spoiled(data: bytes, chance: random.Random) -> bytes:
    """Bits flipped, cut off, doubled, moved or overwritten."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at, size = chance.randrange(len(made) + 1), chance.randint(0, 300)
        match chance.randrange(5):
            case 0 if at < len(made):
                made[at] ^= 1 << chance.randrange(8)
            case 1:
                del made[at:]
            case 2:
                made[at:at] = made[at : at + size]
            case 3:
                made[at : at + size] = chance.randbytes(size)
            case _:
                del made[at : at + size]
    return bytes(made)


def test_spoiled_at_random(tmp_path: Path, seed: int, add_result: AddResult) -> None:
    chance = random.Random(seed)
    names = "abcdefghjkmnpqrstvwxyz"
    sent = damaged = 0
    for number in range(sized(200, 20_000)):
        kept = Kept(tmp_path, names[number % len(names)])
        for seq in range(1, WINDOWS + 1):
            kept.close(seq)
        path = kept.path
        kept.spool.close(kept.outbox.pending())
        path.write_bytes(spoiled(path.read_bytes(), chance))
        dashboard = Collector()
        leftovers = SpoolRecovery(config(tmp_path), dashboard)
        for _ in range(3):
            leftovers.step()
        assert not path.exists()
        bodies = {entry.seq: entry.body for entry in kept.outbox.pending()}
        assert {seq for _, seq in dashboard.windows} <= set(bodies)
        assert {who for who, _ in dashboard.windows} <= {kept.identity.id}
        sent, damaged = sent + len(dashboard.windows), damaged + leftovers.errors
    assert sent > 0 < damaged
    add_result("37", runs=sized(200, 20_000), windows_sent=sent, damaged=damaged)
