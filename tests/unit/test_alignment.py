import numpy as np
import pytest
import torch

from unembed.alignment import LEAST_PAIRS, SpaceMap, fit_pairs, imitate
from unembed.alignment.fitting import Network, Posterior, Procrustes, Ridge, methods_for
from unembed.errors import VectorError


def spaces(pairs: int, *, noise: float = 0.05, dims: tuple[int, int] = (24, 16), seed: int = 0):
    """Vectors of the same made-up texts in two spaces: a linear function of the second, shifted, plus noise."""
    random = np.random.default_rng(seed)
    matrix, shift = np.random.default_rng(7).normal(size=dims[::-1]), np.random.default_rng(8).normal(size=dims[0])
    target = random.normal(size=(pairs, dims[1])) * np.linspace(2.0, 0.2, dims[1])
    source = target @ matrix + 2.0 * shift + noise * random.normal(size=(pairs, dims[0]))
    return source, target


def cosine(mapped: np.ndarray, target: np.ndarray) -> float:
    return float((mapped * target / np.linalg.norm(target, axis=1, keepdims=True)).sum(1).mean())


def directions(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("method", [Ridge(0.1), Posterior(0.1, 0.5), Network(0.1, width=32)])
def test_every_method_maps_vectors_that_it_has_not_seen(method):
    source, target = map(directions, spaces(400))
    other_source, other_target = map(directions, spaces(100, seed=1))
    assert cosine(method.fit(source, target).map_array(other_source), other_target) > 0.9


def test_procrustes_finds_a_rotation_from_few_pairs():
    target = np.random.default_rng(0).normal(size=(40, 16))
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))
    mapped = Procrustes().fit(directions(target @ rotation)[:20], directions(target)[:20]).map_array(target @ rotation)
    assert cosine(mapped[20:], target[20:]) > 0.99


def test_a_ridge_gives_the_residuals_of_the_rows_that_are_left_out():
    from unembed.alignment.fitting import ridge

    source, target = (side - side.mean(0) for side in spaces(60))
    for inputs in (source, np.tile(source, 4)):  # fewer and more columns than rows
        strength = 0.3 * (inputs**2).sum(1).mean()
        _, residuals = ridge(inputs, target, 0.3)
        rest = np.arange(60) != 5
        gram = inputs[rest].T @ inputs[rest] + strength * np.eye(inputs.shape[1])
        without = np.linalg.solve(gram, inputs[rest].T @ target[rest])
        assert residuals[5] == pytest.approx(target[5] - inputs[5] @ without, abs=1e-6)


def test_the_best_method_on_held_out_pairs_is_fitted_on_all_of_them():
    source, target = spaces(300)
    fit = fit_pairs(source, target)
    other_source, other_target = spaces(100, seed=1)
    assert fit.pairs == 300
    assert fit.scores.keys() == {"procrustes", "ridge", "posterior"}
    assert fit.score == max(fit.scores.values())
    assert fit.cosine == pytest.approx(cosine(fit.held_out, target), abs=1e-6)
    assert cosine(fit.there.map_array(other_source), other_target) == pytest.approx(fit.cosine, abs=0.05)
    assert cosine(fit.back.map_array(other_target), other_source) > 0.9
    assert fit.top1 > 0.9


def test_other_vectors_of_the_target_help_where_pairs_are_few():
    (source, target), (unseen, truth) = spaces(60, noise=2.0), spaces(300, noise=2.0, seed=1)
    _, others = spaces(3000, noise=2.0, seed=2)
    alone, helped = (
        cosine(Posterior(0.1, 1.0).fit(*map(directions, (source, target)), covariance).map_array(unseen), truth)
        for covariance in (None, np.cov(directions(others).T))
    )
    assert helped > alone
    fit = fit_pairs(source, target, others=others)
    assert cosine(fit.there.map_array(unseen), truth) > 0.5
    with pytest.raises(VectorError, match="1 of the other"):
        fit_pairs(source, target, others=np.where(np.arange(len(others))[:, None] == 3, np.nan, others))


def test_imitated_vectors_are_as_far_from_the_truth_as_real_ones():
    (source, target), (real, others) = spaces(300, noise=2.0), spaces(500, noise=2.0, seed=1)
    clean, _ = spaces(500, noise=0.0, seed=1)
    imitated = imitate(source, target, others)
    expected, found = (cosine(directions(vectors), clean) for vectors in (real, imitated))
    assert found == pytest.approx(expected, abs=0.05)
    assert (imitated == imitate(source, target, others)).all()
    assert (imitated != imitate(source, target, others, seed=1)).any()


def test_the_judge_chooses_the_method():
    source, target = spaces(200)

    def judge(mapped: np.ndarray, rows: np.ndarray) -> np.ndarray:
        assert mapped.shape == (len(rows), 16)
        return -(mapped * directions(target)[rows]).sum(1)  # the worst is best

    assert fit_pairs(source, target, judge=judge).cosine < fit_pairs(source, target).cosine


def test_the_length_of_vectors_does_not_matter():
    source, target = spaces(100)
    scaled = source * np.random.default_rng(3).uniform(1, 100, (100, 1))
    again = fit_pairs(scaled, 5 * target)
    assert again.held_out == pytest.approx(fit_pairs(source, target).held_out, abs=1e-5)


def test_a_quick_fit_compares_fewer_methods_and_is_nearly_as_good():
    source, target = spaces(300)
    tried = []
    quick = fit_pairs(source, target, quick=True, on_progress=lambda label, more, total: tried.append(total))
    assert len(tried) == len(methods_for(240, quick=True)) + 1 < len(methods_for(240))
    assert not any(isinstance(method, Network) for method in methods_for(9000, quick=True))
    assert quick.cosine > fit_pairs(source, target).cosine - 0.02


def test_only_many_pairs_train_a_network():
    assert not any(isinstance(method, Network) for method in methods_for(3999))
    assert any(isinstance(method, Network) for method in methods_for(4000))


def test_pairs_that_do_not_belong_together_are_refused():
    source, target = spaces(300)
    with pytest.raises(VectorError, match="do not belong together"):
        fit_pairs(source, np.random.default_rng(5).permutation(target))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, t: (s[: LEAST_PAIRS - 1], t[: LEAST_PAIRS - 1]), "at least 50 are needed"),
        (lambda s, t: (np.repeat(s[:10], 10, 0), np.repeat(t[:10], 10, 0)), "10 different pairs"),
        (lambda s, t: (s, np.ones_like(t)), "1 different pairs"),
        (lambda s, t: (s, t[:-1]), "100 vectors on one side and 99 on the other"),
        (lambda s, t: (np.where(np.arange(100)[:, None] == 3, np.nan, s), t), "not finite, the first in row 3"),
        (lambda s, t: (s, np.where(np.arange(100)[:, None] == 4, 0.0, t)), "all zeros, the first in row 4"),
        (lambda s, t: (s[0], t), "shape"),
    ],
)
def test_faulty_pairs_are_refused_with_the_reason(change, message):
    with pytest.raises(VectorError, match=message):
        fit_pairs(*change(*spaces(100)))


def test_a_map_is_its_state(tmp_path):
    source, target = map(directions, spaces(100))
    fitted = Network(0.1, width=8).fit(source, target)
    again = SpaceMap(24, 16, 8)
    again.load_state_dict(fitted.state_dict())
    vectors = torch.randn(3, 24)
    assert torch.equal(again(vectors), fitted(vectors))
    assert again(vectors).norm(dim=-1) == pytest.approx(1.0)
