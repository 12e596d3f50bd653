"""Job, rank and world size come from the launcher's variables; a torchrun job without a name gets a
name too."""

from __future__ import annotations

import os
import socket

import pytest
from compilewatch.config import load
from compilewatch.identity.identity import identity_build, identity_refresh
from compilewatch.identity.launcher import placement_of
from compilewatch.wire.messages import STAGE

UNNAMED = {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "node7", "MASTER_PORT": "29500"}
RANK = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, ("", 0, 0, 1)),
        (RANK, ("", 3, 1, 4)),
        ({"TORCHELASTIC_RUN_ID": "a1", **RANK}, ("a1", 3, 1, 4)),
        (
            {"SLURM_JOB_ID": "9", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "4"},
            ("9", 3, 1, 4),
        ),
        ({"RAY_JOB_ID": "02000000", **RANK}, ("02000000", 3, 1, 4)),
        ({"LOCAL_WORLD_SIZE": "2", **UNNAMED, **RANK}, ("node7:29500", 3, 1, 4)),
        ({"RANK": "-1", "LOCAL_RANK": "x", "WORLD_SIZE": "12345678901"}, ("", 0, 0, 1)),
    ],
)
def test_a_process_reports_its_place(
    variables: dict[str, str], place: tuple[str, int, int, int]
) -> None:
    assert placement_of(variables) == place


def test_an_unnamed_job_on_one_host_is_named_after_its_launcher() -> None:
    job, *_ = placement_of({"LOCAL_WORLD_SIZE": "4", **UNNAMED, **RANK})
    assert job == f"{socket.gethostname()}:{os.getppid()}"


def test_a_declared_stage_is_kept_with_the_ranks_hardware() -> None:
    config = load({"model": "m", "endpoint": "file:/dev/null", "stage": "decoder"}, {})
    identity = identity_build(config, {})
    identity_refresh(identity)
    assert identity.components[STAGE] == "decoder"
    without = identity_build(load({"model": "m", "endpoint": "file:/dev/null"}, {}), {})
    identity_refresh(without)
    assert STAGE not in without.components


def test_strict_redaction_leaves_a_fingerprint_of_the_stage() -> None:
    variables = {"COMPILEWATCH_STAGE": "decoder", "COMPILEWATCH_REDACT": "strict"}
    identity = identity_build(load({"model": "m", "endpoint": "file:/dev/null"}, variables), {})
    assert len(identity.components[STAGE]) == 8 and "decoder" not in str(identity)
