import pytest
import torch
from torch import nn
from torch.testing import assert_close

from unembed.config import TrainingConfig
from unembed.training.optimiser import (
    Muon,
    learning_rate_share,
    make_average,
    make_optimisers,
    orthogonalise,
    set_learning_rates,
)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 6, 20), (2, 20, 6)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(matrices, steps=8))
    assert values.max() < 1.3
    assert values.min() > 0.5


@pytest.mark.parametrize("shape", [(12, 20), (24, 6)])
def test_muon_agrees_with_torch_s_own_but_for_its_half_precision(shape):
    """A matrix with more rows than columns takes larger steps."""
    start, target = (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    ours, theirs = (nn.Parameter(start.clone()) for _ in range(2))
    optimisers = [
        Muon([ours], lr=0.02, weight_decay=0.1),
        torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, nesterov=True),
    ]
    for _ in range(5):
        for parameter, optimiser in zip((ours, theirs), optimisers, strict=True):
            optimiser.zero_grad()
            (parameter - target).square().sum().backward()
            optimiser.step()
    moved = float((theirs - start).norm().detach())
    assert float((ours - theirs).norm().detach()) < 0.05 * moved


def test_adamw_takes_all_and_muon_the_hidden_matrices_only(build_model):
    model = build_model()
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)

    def count(optimisers):
        return sum(p.numel() for o in optimisers for group in o.param_groups for p in group["params"])

    adamw = make_optimisers(model, TrainingConfig(optimiser="adamw"))
    both = make_optimisers(model, TrainingConfig(optimiser="muon"))
    assert (len(adamw), len(both)) == (1, 2)
    assert count(adamw) == count(both) == trainable
    assert all(p.ndim == 2 for p in both[1].param_groups[0]["params"])
    assert len(both[1].param_groups[0]["params"]) == 2 * 4


def test_embeddings_biases_and_norms_are_not_decayed(build_model):
    model = build_model()
    decayed, plain = make_optimisers(model, TrainingConfig(weight_decay=0.3))[0].param_groups
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.3, 0.0)
    spared = {id(p) for p in plain["params"]}
    assert id(model.denoiser.token_embedding.weight) in spared
    assert id(model.denoiser.head.bias) in spared
    assert id(model.denoiser.head.weight) not in spared


def test_cosine_warms_up_peaks_and_falls_to_its_floor():
    config = TrainingConfig(steps=100, warmup_steps=10, schedule="cosine", final_learning_rate_share=0.1)
    shares = [learning_rate_share(step, config) for step in range(101)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[9] == shares[10] == pytest.approx(1.0)
    assert all(later <= earlier for earlier, later in zip(shares[10:], shares[11:], strict=False))
    assert shares[55] == pytest.approx(0.55)
    assert shares[100] == pytest.approx(0.1)


def test_warm_up_stable_decay_stays_at_the_top_until_its_last_part():
    config = TrainingConfig(steps=100, warmup_steps=10, schedule="wsd", decay_share=0.2, final_learning_rate_share=0.0)
    shares = [learning_rate_share(step, config) for step in range(101)]
    assert all(share == 1.0 for share in shares[9:81])
    assert shares[90] == pytest.approx(0.5)
    assert shares[100] == pytest.approx(0.0)


def test_setting_the_rate_twice_does_not_compound():
    parameter = nn.Parameter(torch.zeros(2))
    optimiser = torch.optim.AdamW([parameter], lr=0.5)
    config = TrainingConfig(steps=100, warmup_steps=10)
    for _ in range(2):
        set_learning_rates([optimiser], 4, config)
    assert optimiser.param_groups[0]["lr"] == pytest.approx(0.25)


def test_the_average_follows_quickly_at_first_and_slowly_later():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(0.0)
    average = make_average(model, decay=0.9)
    model.weight.data.fill_(1.0)
    average.update_parameters(model)  # the first update copies
    expected = 1.0
    model.weight.data.fill_(3.0)
    for count in range(1, 200):
        average.update_parameters(model)
        share = min(0.9, (1 + count) / (10 + count))
        expected = share * expected + (1 - share) * 3.0
        assert_close(average.module.weight.detach(), torch.tensor([[expected]]), msg=f"after update {count}")
