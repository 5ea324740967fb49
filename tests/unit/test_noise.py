import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unembed.config import NoiseConfig
from unembed.model import NoiseSchedule

SCHEDULES = ["linear", "loglinear"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_exact_weight_is_minus_the_derivative_of_alpha_over_the_mask_rate(name):
    schedule = NoiseSchedule(NoiseConfig(schedule=name))
    times = torch.linspace(0.05, 1.0, 50, dtype=torch.float64, requires_grad=True)
    rate = schedule.mask_rate(times)
    (slope,) = torch.autograd.grad(rate.sum(), times)  # d(1 - alpha)/dt = -alpha'
    torch.testing.assert_close(schedule.weight(times), slope / rate)


def test_the_paper_s_weight_is_one_over_t_whatever_the_schedule():
    schedule = NoiseSchedule(NoiseConfig(schedule="loglinear", weight="paper"))
    times = torch.tensor([0.1, 0.5, 1.0])
    torch.testing.assert_close(schedule.weight(times), 1.0 / times)
    exact = NoiseSchedule(NoiseConfig(schedule="loglinear")).weight(times)
    assert not torch.allclose(schedule.weight(times), exact)


@pytest.mark.parametrize("name", SCHEDULES)
@given(rate=st.floats(0.0, 0.99))
def test_time_of_inverts_the_mask_rate(name, rate):
    schedule = NoiseSchedule(NoiseConfig(schedule=name))
    wanted = torch.tensor(rate, dtype=torch.float64)
    assert float(schedule.mask_rate(schedule.time_of(wanted))) == pytest.approx(rate, abs=1e-5)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_fully_masked_canvas_has_time_one(name):
    assert float(NoiseSchedule(NoiseConfig(schedule=name)).time_of(torch.ones(()))) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("masking", ["independent", "count"])
def test_mask_rates_cover_the_whole_range_and_are_not_always_ten_percent(masking):
    schedule = NoiseSchedule(NoiseConfig(masking=masking))
    times = torch.cat([schedule.sample(64, 100, generator(seed))[0] for seed in range(50)])
    histogram = torch.histc(times, bins=10, min=0.005, max=1.005) / len(times)
    assert histogram.min() > 0.08
    assert histogram.max() < 0.12
    assert times.max() > 0.99


@given(count=st.integers(2, 64), seed=st.integers(0, 1000))
def test_times_of_a_batch_fall_one_into_each_slice(count, seed):
    times, _, _ = NoiseSchedule(NoiseConfig(minimum_time=1e-6)).sample(count, 1, generator(seed))
    gaps = times.sort().values.diff()
    assert torch.allclose(gaps, torch.full_like(gaps, 1.0 / count), atol=1e-4)


def test_low_discrepancy_times_estimate_a_mean_better_than_independent_ones():
    schedule = NoiseSchedule(NoiseConfig())
    ours = torch.stack([schedule.sample(32, 1, generator(seed))[0].square().mean() for seed in range(200)])
    independent = torch.stack([torch.rand(32, generator=generator(seed)).square().mean() for seed in range(200)])
    assert ours.std() < 0.2 * independent.std()


@given(rows=st.integers(1, 20), length=st.integers(1, 40), seed=st.integers(0, 10_000))
def test_counted_masks_leave_no_row_without_one_and_match_the_time(rows, length, seed):
    times, _, masks = NoiseSchedule(NoiseConfig(masking="count")).sample(rows, length, generator(seed))
    assert masks.any(1).all()
    assert torch.allclose(masks.float().mean(1), times)


def test_each_number_of_counted_masks_is_equally_likely():
    """The bound needs it: the number is the time's share of the positions, rounded up and not to the nearest."""
    _, _, masks = NoiseSchedule(NoiseConfig(masking="count", minimum_time=1e-6)).sample(400, 4, generator())
    assert torch.bincount(masks.sum(1), minlength=5).tolist() == pytest.approx([0, 100, 100, 100, 100], abs=1)


def test_counting_is_for_the_linear_schedule():
    with pytest.raises(ValueError, match="needs schedule: linear"):
        NoiseConfig(masking="count", schedule="loglinear")


def test_independent_masks_follow_the_rate():
    schedule = NoiseSchedule(NoiseConfig(schedule="loglinear"))
    times, _, masks = schedule.sample(4000, 64, generator())
    assert float(masks.float().mean()) == pytest.approx(float(schedule.mask_rate(times).mean()), abs=0.005)


@pytest.mark.parametrize("settings", [{}, {"schedule": "loglinear"}, {"masking": "count"}], ids=str)
def test_a_share_of_samples_can_be_put_on_the_canvas_that_decoding_starts_from(settings):
    schedule = NoiseSchedule(NoiseConfig(full_mask_share=0.3, **settings))
    times, weights, masks = schedule.sample(4000, 64, generator())
    assert float((times == 1.0).float().mean()) == pytest.approx(0.3, abs=0.03)
    assert masks[times == 1.0].all()
    assert (weights[times == 1.0] == 1.0).all(), "they must count, whatever the schedule says of t = 1"
    assert torch.equal(weights[times < 1.0], schedule.weight(times[times < 1.0]))
