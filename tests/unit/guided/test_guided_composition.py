"""Which edits of a text are done together."""

import numpy as np
import pytest

from unembed.decoding.guided.composition import compose


class TestComposition:
    vector, target = np.array([0.6, 0.8, 0.0]), np.array([1.0, 0.0, 0.0])

    def compose(self, differences, cells, bonus=None):
        bonus = np.zeros(len(differences)) if bonus is None else np.array(bonus)
        return compose(self.vector, self.target, np.array(differences), np.array(cells, dtype=bool), bonus)

    def test_edits_are_combined_that_only_pay_together(self):
        differences = [[0.0, -0.3, 0.9], [0.0, -0.3, -0.9], [0.0, -0.2, 0.0]]
        alone = [combination for combination in self.compose(differences, np.eye(3)) if len(combination.edits) == 1]
        assert max(combination.cosine for combination in alone if combination.edits != (2,)) < 0.6
        best = self.compose(differences, np.eye(3))[0]
        assert best.edits == (0, 1, 2)
        assert best.cosine == pytest.approx(1.0)

    def test_edits_of_the_same_part_exclude_each_other(self):
        combinations = self.compose([[0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0]], [[1, 0], [1, 1], [0, 1]])
        assert {combination.edits for combination in combinations} == {(0,), (1,), (2,), (0, 2)}

    def test_each_combination_comes_once_the_best_first(self):
        random = np.random.default_rng(0)
        combinations = self.compose(0.1 * random.normal(size=(7, 3)), np.eye(7))
        assert len({combination.edits for combination in combinations}) == len(combinations) > 60
        scores = [combination.score for combination in combinations]
        assert scores == sorted(scores, reverse=True)

    def test_a_bonus_counts_beside_the_cosine(self):
        differences = [[0.1, 0.0, 0.0], [0.1, 0.0, 0.0]]
        assert self.compose(differences, [[1], [1]], bonus=[0.0, 0.5])[0].edits == (1,)
