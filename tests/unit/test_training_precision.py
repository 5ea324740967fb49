"""In which precision a run computes."""

import pytest
import torch

from unembed.config import TrainingConfig
from unembed.training import precision
from unembed.training.precision import computes_in_bfloat16

CPU = torch.device("cpu")


@pytest.mark.parametrize("native", [True, False])
def test_by_default_a_run_computes_in_bfloat16_where_the_device_has_instructions_for_it(native, monkeypatch):
    monkeypatch.setattr(precision, "has_native_bfloat16", lambda device: native)
    assert computes_in_bfloat16(TrainingConfig(), CPU) is native


@pytest.mark.parametrize(("name", "expected"), [("float32", False), ("bfloat16", True), ("bf16", True)])
@pytest.mark.parametrize("native", [True, False])
def test_a_named_precision_is_taken_whatever_the_device_has(name, expected, native, monkeypatch):
    monkeypatch.setattr(precision, "has_native_bfloat16", lambda device: native)
    assert computes_in_bfloat16(TrainingConfig(precision=name), CPU) is expected
