"""Golden batches of models as people serve them: no healthy model is reported as wrong, and each
fault of a compiler is found.

`python -m tests.agent.golden_real` runs all twenty models, including those of timm, and each fault
in six models."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.agent.golden_real.faults import FAULTS
from tests.agent.golden_real.models import of_transformers
from tests.agent.golden_real.trial import faulty, healthy

MODELS = of_transformers()
PLACES = {
    "a wrong custom op": "BertModel",
    "a dropped residual": "GPT2LMHeadModel",
    "another epsilon": "LlamaForCausalLM",
    "a transposed weight": "BertModel",
    "sums in half precision": "LlamaForCausalLM",
    "a swapped activation": "T5EncoderModel",
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("BertModel", torch.float32),
        ("T5EncoderModel", torch.bfloat16),
        ("Qwen2ForCausalLM", torch.float32),
    ],
)
def test_a_healthy_model_passes_and_its_next_version_is_the_same(
    tmp_path: Path, name: str, dtype: torch.dtype
) -> None:
    first, second = healthy(name, MODELS[name], tmp_path, dtype, backend="aot_eager")
    assert (first.state, second.state) == ("passed", "passed"), (first.text, second.text)
    assert (first.parity.reference, second.parity.last, second.parity.last_version) == (
        "float64",
        "same",
        "1",
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_in_the_graph_of_a_real_model(tmp_path: Path, fault: str) -> None:
    found = faulty(PLACES[fault], MODELS[PLACES[fault]], tmp_path, fault)
    assert found is not None, "the model has no place for it"
    good, bad = found
    assert (good.state, bad.state) == ("passed", "failed"), (good.text, bad.text)
    assert bad.parity.times is None or bad.parity.times > 1.0
