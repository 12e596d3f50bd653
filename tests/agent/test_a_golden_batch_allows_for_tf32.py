"""A GPU's convolutions keep as few digits as float16 unless told otherwise: eager's error is then allowed three times, as in float16."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from compilewatch.parity.rule import _factor, _in_tf32

MANY = 100_000


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision
    yield
    torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision = before


def result(device: str, dtype: torch.dtype) -> SimpleNamespace:
    """What is asked of a tensor: where it is and of which precision."""
    return SimpleNamespace(device=torch.device(device), dtype=dtype)


@pytest.mark.parametrize(
    ("convolutions", "products", "few_digits"), [("tf32", "ieee", True), ("ieee", "tf32", True), ("ieee", "ieee", False)]
)
def test_whichever_switch_a_job_set_is_read(convolutions: str, products: str, few_digits: bool) -> None:
    torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision = convolutions, products
    assert _in_tf32(torch, result("cuda", torch.float32)) is few_digits


def test_as_torch_begins_convolutions_keep_few_digits() -> None:
    assert _in_tf32(torch, result("cuda", torch.float32))


@pytest.mark.parametrize(("device", "dtype"), [("cpu", torch.float32), ("cuda", torch.float64)])
def test_elsewhere_nothing_changes(device: str, dtype: torch.dtype) -> None:
    assert not _in_tf32(torch, result(device, dtype))


def test_three_times_eagers_error_is_allowed_where_few_digits_are_kept() -> None:
    assert (_factor(MANY, rough=True), _factor(MANY, rough=False)) == (3.0, 2.0)
