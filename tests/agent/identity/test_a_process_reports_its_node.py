"""The node comes from COMPILEWATCH_NODE alone: without the setting, nothing is guessed and no field
is sent."""

from __future__ import annotations

from compilewatch.config import load
from compilewatch.identity.identity import identity_build
from compilewatch.identity.redaction import fingerprint, identity_redact
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Identity

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "ranker-7d9f8b6c5-x2x4q"}


def identity(**variables: str) -> Identity:
    config = load({"model": "m", "endpoint": "file:/dev/null"}, variables)
    return identity_build(config, variables)


def test_the_setting_becomes_the_node() -> None:
    assert identity(**POD, COMPILEWATCH_NODE=" gpu-node-4 ").node == "gpu-node-4"


def test_an_argument_of_init_comes_before_the_variable() -> None:
    given = {"model": "m", "endpoint": "file:/dev/null", "node": "bare-metal-1"}
    assert identity_build(load(given, {"COMPILEWATCH_NODE": "x"}), {}).node == "bare-metal-1"


def test_a_pod_without_the_setting_sends_no_node() -> None:
    assert "node" not in encode(identity(**POD))
    assert "node" not in encode(identity(**POD, COMPILEWATCH_NODE=""))


def test_strict_redaction_leaves_a_fingerprint_of_the_node() -> None:
    found = identity(COMPILEWATCH_NODE="gpu-node-4")
    identity_redact(found)
    assert found.node == fingerprint("gpu-node-4") != "gpu-node-4"
