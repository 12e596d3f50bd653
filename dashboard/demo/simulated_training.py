"""Simulated training job: four ranks on two hosts. One rank compiles once more than the others."""

from __future__ import annotations

from dashboard.demo.simulated_fleet import Rollout, SimulatedModel

TRAINING = SimulatedModel(
    name="gpt-pretrain",
    region="train_step",
    gpu="NVIDIA H100",
    torch="2.10.0",
    median=0.62,
    calls_per_minute=90,
    memory=96.4,
    frames=("block_forward", "loss"),
    rollouts=(
        Rollout(
            "run-0411",
            4,
            35,
            compile_seconds=72.0,
            cached=1.0,
            environment="training",
            job="pretrain-0411",
            apart=2,
        ),
    ),
    buckets={"2^16": 1.0},
)
