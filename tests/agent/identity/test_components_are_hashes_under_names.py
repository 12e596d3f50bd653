"""The configuration of a compilation is reported name by name, as versions and short hashes; no
value leaves the process."""

from __future__ import annotations

import gzip
import importlib
import threading

import pytest
from compilewatch.config import Config
from compilewatch.identity.compile_config import (
    MAX_NAMES,
    OPTIONS,
    Options,
    components,
    hash_folders,
    hash_variables,
)
from compilewatch.identity.identity import identity_build, identity_refresh
from compilewatch.wire.codec import dumps

TORCH = (
    "torch._inductor.config",
    "torch._functorch.config",
    "torch._dynamo.config",
    "torch._inductor.runtime.cache_dir_utils",
)


@pytest.fixture(autouse=True)
def torch_is_there() -> None:
    for name in TORCH:
        importlib.import_module(name)


def seen_options() -> dict[str, str]:
    options = Options()
    options.note()
    return options.hashes()


def test_each_variable_that_configures_has_its_own_hash() -> None:
    environ = {
        "TORCHINDUCTOR_MAX_AUTOTUNE": "1",
        "TORCHINDUCTOR_FREEZING": "1",
        "PATH": "/bin",
        "TORCHELASTIC_RUN_ID": "7",
    }
    found = hash_variables(environ)
    assert list(found) == ["env TORCHINDUCTOR_FREEZING", "env TORCHINDUCTOR_MAX_AUTOTUNE"]
    assert len(set(found.values())) == 2
    assert (
        hash_variables({**environ, "TORCHINDUCTOR_FREEZING": "0"})["env TORCHINDUCTOR_FREEZING"]
        != found["env TORCHINDUCTOR_FREEZING"]
    )


def test_options_at_their_default_are_not_reported_and_others_are() -> None:
    import torch._dynamo.config
    import torch._inductor.config

    before = seen_options()
    with (
        torch._inductor.config.patch(epilogue_fusion=False),
        torch._dynamo.config.patch(recompile_limit=77),
    ):
        told = seen_options()
    assert set(told) - set(before) == {
        "inductor_config epilogue_fusion",
        "dynamo_config recompile_limit",
    }
    with torch._dynamo.config.patch(recompile_limit=78):
        assert (
            seen_options()["dynamo_config recompile_limit"] != told["dynamo_config recompile_limit"]
        )
    assert seen_options() == before


def test_an_option_is_read_on_the_thread_that_compiles() -> None:
    import torch._inductor.config

    seen: list[dict[str, str]] = []

    def compile_here() -> None:
        with torch._inductor.config.patch(epilogue_fusion=False):
            seen.append(seen_options())

    thread = threading.Thread(target=compile_here)
    thread.start()
    thread.join()
    assert "inductor_config epilogue_fusion" in seen[0]
    assert "inductor_config epilogue_fusion" not in seen_options()


def test_paths_and_objects_reveal_nothing() -> None:
    import torch._inductor.config

    before = seen_options()
    with torch._inductor.config.patch(
        worker_log_path="/home/somebody/logs", post_grad_custom_pre_pass=lambda graph: None
    ):
        first = seen_options()
    assert set(first) - set(before) == {"inductor_config post_grad_custom_pre_pass"}
    with torch._inductor.config.patch(post_grad_custom_pre_pass=lambda graph: graph):
        assert seen_options() == first


def test_two_folders_have_two_hashes() -> None:
    assert hash_folders({"TORCHINDUCTOR_CACHE_DIR": "/a"}) != hash_folders(
        {"TORCHINDUCTOR_CACHE_DIR": "/b"}
    )
    assert hash_folders({"TORCHINDUCTOR_CACHE_DIR": "/a/b/../c"}) == hash_folders(
        {"TORCHINDUCTOR_CACHE_DIR": "/a/c/"}
    )
    assert set(hash_folders({"TRITON_CACHE_DIR": "/t"})) == {"cache folder", "triton cache folder"}


def test_the_identity_stays_small_for_any_number_of_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(300):
        monkeypatch.setenv(f"TORCHINDUCTOR_SETTING_{number:03}", f"value-{number}")
    found = components()
    variables = [name for name in found if name.startswith("env ")]
    assert len(variables) == MAX_NAMES + 1
    assert "env (others)" in variables
    monkeypatch.setenv("TORCHINDUCTOR_SETTING_299", "another")
    assert components()["env (others)"] != found["env (others)"]


def test_an_identity_with_a_usual_configuration_takes_less_than_two_kilobytes_compressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch._inductor.config

    usual = (
        "TORCHINDUCTOR_MAX_AUTOTUNE TORCHINDUCTOR_CPP_WRAPPER CUDA_HOME CUDA_VERSION "
        "CUDA_VISIBLE_DEVICES NCCL_DEBUG NCCL_VERSION "
        "NCCL_SOCKET_IFNAME OMP_NUM_THREADS MKL_NUM_THREADS PYTORCH_CUDA_ALLOC_CONF "
        "TORCH_CUDA_ARCH_LIST TORCH_LOGS TRITON_PTXAS_PATH"
    )
    for name in usual.split():
        monkeypatch.setenv(name, f"the-value-of-{name.lower()}")
    with torch._inductor.config.patch(epilogue_fusion=False, coordinate_descent_tuning=True):
        OPTIONS.note()
    identity = identity_build(Config("ranker", "file:/dev/null"))
    identity_refresh(identity)
    identity.capabilities = {
        f"a capability {number}": ("partly", "this torch has no such thing") for number in range(15)
    }
    text = dumps(identity)
    assert b"env TORCHINDUCTOR_CPP_WRAPPER" in text
    assert b"inductor_config coordinate_descent_tuning" in text
    assert b"the-value-of" not in text
    assert len(gzip.compress(text)) < 2000
