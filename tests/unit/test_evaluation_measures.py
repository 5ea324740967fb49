"""The parts of an evaluation: intervals, measures, protocols, baselines, curves."""

import numpy as np
import pytest
import torch

from unembed.canvas import CanvasVocabulary
from unembed.errors import CorpusError, StoreError
from unembed.evaluation import Bootstrap, baselines, bootstrap, breakdowns
from unembed.evaluation.baselines import Unconditional, check_store, count_tokens, nearest_neighbours, random_tokens
from unembed.evaluation.budget import best_within, budget_rows, choose_budgets
from unembed.evaluation.examiner import Examiner
from unembed.evaluation.perplexity import LanguageModel, perplexity_of_sums
from unembed.evaluation.recover import Waypoint
from unembed.evaluation.texts import choose_references
from unembed.inverter import Inverter
from unembed.measures import MEASURES, token_hits
from unembed.model.teacher_forcing import masked_guesses
from unembed.store import Store

SHORT = ["The cat sleeps.", "a dog plays in the snow.", "the girl reads a long book.", "the boat is on the river."]
LONG = [
    "the old woman drinks cold water and the children eat bread and red apples at home.",
    "my father works in the city and her friend lives near the lake in a big house.",
    "the wind is cold at night and the moon is over the lake and the sea today.",
]


class TestIntervals:
    def test_surround_their_value_and_narrow_with_more_texts(self):
        values = np.random.default_rng(0).random(400)
        few, many = Bootstrap().mean(values[:40]), Bootstrap().mean(values)
        assert few.low < few.value < few.high
        assert many.high - many.low < 0.5 * (few.high - few.low)
        assert (few.n, many.n) == (40, 400)

    def test_are_as_wide_as_the_theory_says(self):
        values = np.random.default_rng(0).random(400)
        figure = Bootstrap(4000).mean(values)
        assert figure.high - figure.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)

    def test_are_a_point_where_all_texts_agree(self):
        figure = Bootstrap().mean(np.zeros(50))
        assert (figure.value, figure.low, figure.high) == (0.0, 0.0, 0.0)

    def test_depend_on_the_seed_alone(self, monkeypatch):
        values = np.random.default_rng(0).random(30)
        assert Bootstrap(seed=1).mean(values) == Bootstrap(seed=1).mean(values) != Bootstrap(seed=2).mean(values)
        whole = Bootstrap(50).mean(values)
        monkeypatch.setattr(bootstrap, "_BLOCK", 70)
        assert Bootstrap(50).mean(values) == whole

    def test_of_a_ratio_count_parts_and_not_texts(self):
        assert Bootstrap().ratio(np.array([1.0, 0.0]), np.array([1.0, 9.0])).value == 0.1

    def test_exist_for_groups_that_a_resample_may_miss(self):
        figure = Bootstrap().ratio(np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]))
        assert (figure.value, figure.low, figure.high) == (1.0, 1.0, 1.0)


class TestProtocols:
    def choose(self, tokenizer, protocol, texts=(*SHORT, *LONG), **options):
        return choose_references(texts, tokenizer, **{"protocol": protocol, "canvas_length": 12, "limit": 99} | options)

    def test_canvas_cuts_long_texts_and_leaves_out_short_ones(self, tiny_tokenizer):
        chosen = self.choose(tiny_tokenizer, "canvas")
        assert len(chosen) == 3
        assert all(len(ids) == 12 for ids in chosen.ids)
        assert all(any(text.startswith(said) for text in LONG) for said in chosen.texts)

    def test_natural_takes_what_fits_and_cuts_nothing(self, tiny_tokenizer):
        chosen = self.choose(tiny_tokenizer, "natural")
        assert sorted(chosen.texts) == sorted(text.lower() for text in SHORT)

    def test_a_text_as_long_as_the_canvas_belongs_to_both(self, tiny_tokenizer):
        exact = ["the old man drinks tea and the cat sleeps at home."]
        assert self.choose(tiny_tokenizer, "canvas", exact).texts == self.choose(tiny_tokenizer, "natural", exact).texts

    def test_texts_are_in_the_tokenizer_s_normal_form(self, tiny_tokenizer):
        assert "the cat sleeps." in self.choose(tiny_tokenizer, "natural").texts

    def test_the_choice_depends_on_the_seed_alone(self, tiny_tokenizer):
        texts = [f"the cat sleeps in house {number}." for number in range(40)]
        one, same, other = (
            self.choose(tiny_tokenizer, "natural", texts, limit=5, seed=seed).texts for seed in (1, 1, 2)
        )
        assert one == same != other
        assert len(one) == 5

    def test_a_text_counts_once(self, tiny_tokenizer):
        assert len(self.choose(tiny_tokenizer, "natural", ["the cat", "the cat ", "", "the dog"])) == 2

    def test_no_text_that_fits_is_an_error_that_says_so(self, tiny_tokenizer):
        with pytest.raises(CorpusError, match="None of the 4 different texts of mine.txt has at least 12 tokens"):
            self.choose(tiny_tokenizer, "canvas", SHORT, name="mine.txt")


class TestBaselines:
    def test_random_tokens_are_of_the_lengths_asked_and_never_special(self):
        drawn = random_tokens([3, 500], CanvasVocabulary(10, special=(0, 4)), seed=0)
        assert [len(ids) for ids in drawn] == [3, 500]
        assert set(drawn[1]) == {1, 2, 3, 5, 6, 7, 8, 9}

    def test_the_unconditional_model_says_the_same_whatever_the_vector(self, make_inverter):
        inverter = make_inverter(readout="linear")
        vectors = np.random.default_rng(0).normal(size=(4, 16))
        blind = Inverter(inverter.model, inverter.tokenizer, inverter.info, engine=Unconditional(inverter.engine))
        assert len({one.text for one in inverter.invert(vectors, lengths=[6] * 4)}) > 1
        assert len({one.text for one in blind.invert(vectors, lengths=[6] * 4)}) == 1

    def test_a_surrogate_does_not_tell_the_unconditional_model_which_text_is_nearer(self, make_inverter):
        inverter = make_inverter(freeze_token_embeddings=True, surrogate={"layers": 1})
        canvas, vector = torch.tensor([[20, 31, 25]]), torch.ones(1, 16)
        assert inverter.engine.resemblance(canvas, vector) is not None
        assert Unconditional(inverter.engine).resemblance(canvas, vector) is None

    def test_the_nearest_neighbour_of_a_stored_text_is_the_text_itself(self, tiny_store, monkeypatch):
        store = Store(tiny_store / "train")
        monkeypatch.setattr(baselines, "_ROWS_AT_ONCE", 7)
        rows, read = np.array([0, 6, 7, 30, 47]), []
        found = nearest_neighbours(3.0 * store.embeddings(rows), store, read.append)
        assert found == [
            ids[:length] for ids, length in zip(store.tokens(rows).tolist(), store.lengths[rows], strict=True)
        ]
        assert sum(read) == len(store)

    def test_tokens_are_counted_without_padding(self, tiny_store):
        store = Store(tiny_store / "train")
        counts = count_tokens(store)
        assert counts.sum() == store.lengths.sum()
        assert counts[store.tokenizer().token_to_id("the")] > counts[store.tokenizer().token_to_id("moon")] == 1

    def test_a_store_of_another_encoder_is_refused(self, tiny_store, make_inverter):
        info = make_inverter().info
        other = info.model_copy(update={"encoder": info.encoder.model_copy(update={"prompt": "query: "})})
        check_store(Store(tiny_store / "train"), info)
        with pytest.raises(StoreError, match="query: "):
            check_store(Store(tiny_store / "train"), other)


class TestMaskedGuesses:
    class Knowing:
        """A model that knows the text, but for one token."""

        vocabulary = CanvasVocabulary(20)

        def __init__(self, tokens, unknown):
            self.tokens, self.unknown = tokens, unknown

        def hidden(self, canvas, condition, times):
            return canvas

        def logits(self, hidden, where, canvas, condition):
            assert (canvas[where] == self.vocabulary.mask).all()
            guess = self.tokens[where]
            return torch.nn.functional.one_hot(torch.where(guess == self.unknown, 0, guess), 23).float()

    @pytest.mark.parametrize(("rate", "masked"), [(0.1, 1), (0.5, 4), (0.9, 7)])
    def test_the_share_is_masked_and_guessed_right_where_the_model_knows(self, rate, masked):
        from unembed.config import NoiseConfig
        from unembed.model import NoiseSchedule

        tokens = torch.arange(1, 17).reshape(2, 8)
        draws = torch.rand(2, 8, generator=torch.Generator().manual_seed(0))
        model = self.Knowing(tokens, unknown=int(tokens[0, draws[0].argmin()]))
        right, counted = masked_guesses(model, NoiseSchedule(NoiseConfig()), tokens, None, draws, rate)
        assert counted.sum(1).tolist() == [masked, masked]
        assert right.sum(1).tolist() == [masked - 1, masked]

    def test_padding_does_not_count(self):
        from unembed.config import NoiseConfig
        from unembed.model import NoiseSchedule

        tokens = torch.full((1, 8), TestMaskedGuesses.Knowing.vocabulary.pad)
        tokens[0, :3] = 5
        model = self.Knowing(tokens, unknown=-1)
        right, counted = masked_guesses(model, NoiseSchedule(NoiseConfig()), tokens, None, torch.rand(1, 8), 1.0)
        assert counted.sum() == right.sum() == 3


class TestBreakdowns:
    HITS = ((True, False), (True, True, False, False))

    def test_by_position_counts_the_texts_that_reach_it(self):
        rows = breakdowns.by_position(self.HITS, Bootstrap(10), "blind")
        assert [(row.name, row.n, row.figures["token_accuracy"].value) for row in rows] == [
            ("1", 2, 1.0),
            ("2", 2, 0.5),
            ("3", 1, 0.0),
            ("4", 1, 0.0),
        ]

    def test_by_frequency_groups_tokens_by_rank(self):
        counts = np.arange(30, 0, -1)
        counts[29] = 0
        rows = breakdowns.by_frequency(self.HITS, [[0, 29], [1, 2, 15, 29]], counts, Bootstrap(10), "blind")
        found = {row.name: (row.figures["token_accuracy"].value, row.facts["tokens"]) for row in rows}
        assert found == {"1 to 10": (1.0, 3), "11 to 100": (0.0, 1), "never seen": (0.0, 2)}

    def test_by_length_groups_texts(self):
        rows = breakdowns.by_length(self.HITS, 16, Bootstrap(10), "blind")
        assert [(row.name, row.n) for row in rows] == [("1 to 2", 1), ("3 to 4", 1)]

    def test_a_position_that_was_not_reached_is_a_miss(self):
        assert token_hits([1], [1, 2]) == [True, False]


class TestBudget:
    WAY = (
        Waypoint(0, -2.0, [1]),
        Waypoint(0, -1.0, [2]),
        Waypoint(4, 0.5, [3]),
        Waypoint(30, 0.8, [4]),
    )

    def test_the_best_so_far_counts(self):
        assert [best_within(self.WAY, budget)[0] for budget in (0, 3, 4, 29, 30, 999)] == [2, 2, 3, 3, 4, 4]

    def test_budgets_are_round_numbers_up_to_the_largest(self):
        assert choose_budgets(533) == [0, 10, 20, 50, 100, 200, 533]
        assert choose_budgets(5) == [0, 5]
        assert choose_budgets(0) == [0]

    def test_the_curve_is_measured_on_texts_again(self, tiny_tokenizer, fake_encoder):
        chosen = choose_references(SHORT, tiny_tokenizer, protocol="natural", canvas_length=12, limit=2)
        examiner = Examiner(chosen, tiny_tokenizer, fake_encoder, Bootstrap(20))
        wrong = tiny_tokenizer.encode("the queen", add_special_tokens=False).ids
        ways = [[Waypoint(0, -1.0, wrong), Waypoint(20 * n, 0.1, ids)] for n, ids in enumerate(chosen.ids, start=1)]
        rows = {row.name: row for row in budget_rows(ways, examiner)}
        matches = {name: row.figures["exact_match"].value for name, row in rows.items()}
        assert matches == {"0": 0.0, "10": 0.0, "20": 0.5, "40": 1.0}
        assert rows["40"].figures["cosine"].value == pytest.approx(1.0)
        assert rows["0"].figures["cosine"].value < 0.99
        assert [row.mode for row in rows.values()] == ["blind", "guided", "guided", "guided"]
        assert rows["20"].facts["encoder calls used, mean"] == 20.0


class TestExaminer:
    @pytest.fixture
    def examiner(self, tiny_tokenizer, fake_encoder):
        chosen = choose_references(SHORT, tiny_tokenizer, protocol="natural", canvas_length=12, limit=9)
        return Examiner(chosen, tiny_tokenizer, fake_encoder, Bootstrap(20))

    def test_the_texts_themselves_are_recovered_fully(self, examiner):
        figures = examiner.score(examiner.references.ids).figures
        assert {name: round(figure.value, 5) for name, figure in figures.items()} == {
            measure.name: 100.0 if measure.format == "number" else 1.0 for measure in MEASURES
        }
        assert {figure.n for figure in figures.values()} == {4}

    def test_the_cosine_is_that_of_the_text_and_not_of_the_ids(self, examiner, tiny_tokenizer):
        """A word spelled in letters is other ids but the same text."""
        spelled = [[tiny_tokenizer.token_to_id(piece) for piece in ("t", "##h", "##e")], *examiner.references.ids[1:]]
        examiner.references.texts[0], examiner.references.ids[0] = "the", [tiny_tokenizer.token_to_id("the")]
        scores = examiner.score(spelled)
        assert scores.per_text["exact_match"].tolist() == [0.0, 1.0, 1.0, 1.0]
        assert scores.per_text["cosine"] == pytest.approx(np.ones(4))


class TestPerplexity:
    class Uniform:
        """A language model without preferences among eight tokens."""

        def convert_tokens_to_ids(self, token):
            return 0

        def encode(self, text, add_special_tokens):
            return [1 + ord(letter) % 7 for letter in text]

        def __call__(self, input_ids, attention_mask):
            return type("Output", (), {"logits": torch.zeros(*input_ids.shape, 8)})

    def test_without_preferences_is_the_number_of_tokens(self):
        sums = LanguageModel(self.Uniform(), self.Uniform()).score(["abc", "a longer text", ""])
        assert sums[:, 1].tolist() == [3, 13, 0]
        assert perplexity_of_sums(sums.sum(0, keepdims=True)) == pytest.approx([8.0])
