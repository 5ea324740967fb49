import numpy as np
import pytest
import torch

from unembed.config import DecodingConfig
from unembed.errors import ConfigError, EncoderError, VectorError
from unembed.inverter import Inverter


def vectors(rows, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_inversion_does_not_depend_on_how_vectors_are_batched(make_inverter, batch_size):
    inverter = make_inverter(readout="linear")
    wanted = [inverter.invert(vector)[0] for vector in vectors(7)]
    got = inverter.invert(vectors(7), batch_size=batch_size)
    assert [inversion.text for inversion in got] == [inversion.text for inversion in wanted]
    assert np.allclose([i.confidence for i in got], [i.confidence for i in wanted], atol=1e-5)


def test_an_inversion_tells_text_tokens_confidences_strategy_and_passes(make_inverter):
    inverter = make_inverter()
    (inversion,) = inverter.invert(vectors(1)[0], steps=4, lengths=[6])
    assert len(inversion.tokens) == len(inversion.confidences) == 6
    assert all(0 < confidence <= 1 for confidence in inversion.confidences)
    assert (inversion.strategy, inversion.passes) == ("confidence", 4)
    assert inversion.text
    assert inversion.ids == [inverter.tokenizer.token_to_id(token) for token in inversion.tokens]


def test_known_lengths_are_kept(make_inverter):
    inversions = make_inverter().invert(vectors(4), lengths=[3, 9, 3, 1])
    assert [len(inversion.tokens) for inversion in inversions] == [3, 9, 3, 1]


def test_a_fixed_canvas_of_ends_is_an_empty_text(make_inverter):
    inverter = make_inverter(canvas="fixed")
    bias = inverter.model.denoiser.output_bias.data
    bias[inverter.info.vocabulary.eos] = 50.0
    (inversion,) = inverter.invert(vectors(1))
    assert (inversion.text, inversion.ids, inversion.tokens, inversion.confidences) == ("", [], [], [])


def test_text_on_a_fixed_canvas_ends_at_its_first_end(make_inverter):
    inverter = make_inverter(canvas="fixed")
    eos, pad = inverter.info.vocabulary.eos, inverter.info.vocabulary.pad
    steps = list(inverter.decode(vectors(1)))
    steps[-1].canvas[:] = torch.tensor([[20, 21, 22, eos, 23, eos, pad, pad, pad, 24, 25, 26]])
    inversion = inverter.read(steps[-1], DecodingConfig())[0]
    assert inversion.ids == [20, 21, 22]
    assert inversion.tokens == [inverter.tokenizer.id_to_token(token) for token in (20, 21, 22)]
    assert inversion.text == inverter.tokenizer.decode([20, 21, 22])
    assert len(inversion.confidences) == 3


def test_lists_and_tensors_are_vectors_too(make_inverter):
    inverter = make_inverter()
    assert inverter.invert(vectors(2).tolist()) == inverter.invert(torch.from_numpy(vectors(2)))


def test_bfloat16_tensors_are_vectors_too(make_inverter):
    assert make_inverter().invert(torch.from_numpy(vectors(1)).bfloat16())[0].tokens


def test_steps_belong_to_the_receiver(make_inverter):
    inverter = make_inverter()
    wanted = inverter.invert(vectors(2))
    for step in inverter.decode(vectors(2)):
        step.canvas.fill_(3)  # would reach the decoder if it still used this tensor
        step.confidence.fill_(0.0)
    assert inverter.invert(vectors(2)) == wanted
    assert not step.canvas.is_inference()


def test_a_loaded_inverter_is_laid_out_for_decoding(tiny_checkpoint):
    assert Inverter.from_pretrained(tiny_checkpoint).model._output_columns is not None


def test_the_readout_alone_names_words_in_order_of_their_probability(make_inverter):
    for kind in ("linear", "mlp"):
        named = make_inverter(readout=kind).words(vectors(3), top=5)
        assert [len(words) for words in named] == [5, 5, 5]
        for words in named:
            shares = [share for _, share in words]
            assert shares == sorted(shares, reverse=True)
            assert not {"[PAD]", "[UNK]"} & {word for word, _ in words}
    with pytest.raises(ConfigError, match="no readout"):
        make_inverter(readout="none").words(vectors(1))


def test_no_vectors_give_no_inversions(make_inverter):
    assert make_inverter().invert(np.empty((0, 16))) == []
    assert make_inverter().invert([]) == []


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((2, 15)), "reads 16 numbers each(.|\n)*trained for fake"),
        (np.ones((2, 3, 16)), "shape"),
        (np.array([[np.nan] * 16]), r"not finite \(rows 0\)"),
        (np.array([[1.0] * 16, [np.inf] * 16]), r"1 of 2 vectors are not finite \(rows 1\)"),
        (np.zeros((7, 16)), r"7 of 7 vectors are all zeros \(rows 0, 1, 2, 3, 4, \.\.\.\)"),
        ([["a"] * 16], "not numbers"),
        ([[1.0] * 16, [1.0]], "not numbers in rows of one length"),
    ],
)
def test_vectors_that_cannot_be_read_are_refused_with_the_reason(make_inverter, bad, message):
    with pytest.raises(VectorError, match=message):
        make_inverter().invert(bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "telepathy"}, "strategy: Input should be 'sequential'"),
        ({"steps": 0}, "steps: Input should be greater than 0"),
        ({"stepz": 1}, "stepz: unknown key; did you mean 'steps'"),
        ({"lengths": [13]}, "from 1 to 12"),
        ({"lengths": [3, 3]}, "2 lengths"),
    ],
)
def test_options_that_make_no_sense_are_refused(make_inverter, options, message):
    with pytest.raises(ConfigError, match=message):
        make_inverter().invert(vectors(1), **options)


def test_guided_decoding_without_the_encoder_is_refused(make_inverter):
    with pytest.raises(ConfigError, match="need the encoder"):
        make_inverter().invert(vectors(1), strategy="guided")


def test_a_stream_of_vectors_is_inverted_in_order_and_as_it_comes(make_inverter):
    inverter = make_inverter()
    read = []

    def batches():
        for start in range(0, 6, 2):
            read.append(start)
            yield vectors(6)[start : start + 2]

    inversions = inverter.stream(batches(), batch_size=1)
    first = next(inversions)
    assert read == [0]
    texts = [inversion.text for inversion in [first, *inversions]]
    assert texts == [inversion.text for inversion in inverter.invert(vectors(6))]


def test_a_bad_vector_in_a_stream_is_named_by_its_row_in_the_whole(make_inverter):
    batches = [vectors(3), np.array([[1.0] * 16, [np.nan] * 16])]
    with pytest.raises(VectorError, match=r"not finite \(rows 4\)"):
        list(make_inverter().stream(batches))


def test_a_fixed_canvas_takes_no_lengths(make_inverter):
    with pytest.raises(ConfigError, match="finds the length itself"):
        make_inverter(canvas="fixed").invert(vectors(1), lengths=[3])


def test_a_text_goes_round_through_its_own_encoder_only(make_inverter, fake_encoder):
    inverter = make_inverter()
    assert len(inverter.invert_text(["the cat sat", "a dog ran"], fake_encoder)) == 2

    class Other:
        description = fake_encoder.description.model_copy(update={"name": "other"})

    with pytest.raises(EncoderError, match="reads vectors of 'fake'(.|\n)*not of 'other'"):
        inverter.invert_text(["the cat sat"], Other())


def test_of_a_text_longer_than_a_canvas_only_what_fits_is_embedded(make_inverter, fake_encoder):
    inverter = make_inverter()
    long = " ".join(["cat"] * 40)
    (cut, whole), embedded = inverter.round_trip([long, "The Cat"], fake_encoder)
    assert (cut.embedded, cut.tokens_in_all, cut.cut) == (" ".join(["cat"] * 12), 40, True)
    assert (whole.embedded, whole.cut) == ("The Cat", False)
    assert np.array_equal(embedded, fake_encoder.encode([cut.embedded, "The Cat"]))
    fake_encoder.seen.clear()
    inverter.invert_text([long, "\ud800cat"], fake_encoder)
    assert fake_encoder.seen == [cut.embedded, "?cat"]


class TestLoadEncoder:
    """What is asked of ``load_encoder`` for encoders that an inverter describes."""

    @pytest.fixture
    def asked(self, monkeypatch):
        asked = []

        def load(name, **options):
            asked.append({"name": name} | options)
            return self.encoder

        monkeypatch.setattr("unembed.encoders.loading.load_encoder", load)
        monkeypatch.setattr("unembed.encoders.load_encoder", load)
        return asked

    @pytest.fixture
    def load(self, make_inverter, fake_encoder, asked):
        def load(*arguments, name="fake", **options):
            inverter, described = (
                make_inverter(),
                {"name": name, "prompt": "query: ", "task": "match", "revision": "r7"},
            )
            fake_encoder.description = fake_encoder.description.model_copy(update=described)
            self.encoder = fake_encoder
            inverter.info = inverter.info.model_copy(update={"encoder": fake_encoder.description})
            return inverter.load_encoder(*arguments, **options)

        return load

    def test_it_is_loaded_as_it_was_for_the_training_vectors(self, load, asked, fake_encoder):
        assert load(device="cpu") is fake_encoder
        assert asked[0] | {"name": "fake", "prompt": "query: ", "task": "match", "device": "cpu"} == asked[0]

    def test_one_on_the_hub_is_loaded_at_its_revision(self, load, asked):
        load(name="organisation/model")
        assert asked[0]["revision"] == "r7"
        load("elsewhere/model", name="organisation/model")
        assert (asked[1]["name"], asked[1]["revision"]) == ("elsewhere/model", None)

    def test_texts_are_sent_to_an_address_only_if_the_caller_gives_it(self, load, asked):
        address = "https://example.org/v1#model"
        with pytest.raises(EncoderError, match="sent to"):
            load(name=address)
        assert asked == []
        load(address, name=address)
        assert asked[0]["name"] == address

    def test_another_encoder_than_the_inverters_is_refused(self, load, make_inverter, fake_encoder):
        load()  # the stub gives this one, with its prompt, whatever is asked for
        with pytest.raises(EncoderError, match="prompt: 'query: '"):
            make_inverter().load_encoder()


def test_search_rounds_can_be_stopped_and_give_inversions(make_inverter, fake_encoder):
    inverter = make_inverter()
    rounds = inverter.search_rounds(vectors(2), encoder=fake_encoder, guided={"rounds": 40, "patience": 40})
    rounds.stop()
    inversions = {}
    for steps in rounds:
        for step in steps:
            inversions |= inverter.read(step, rounds.options)
    assert sorted(inversions) == [0, 1]
    assert all(inversion.encoder_calls and inversion.strategy == "guided" for inversion in inversions.values())


def test_a_device_that_is_not_there_is_refused(make_inverter):
    with pytest.raises(ConfigError, match="cannot be used"):
        make_inverter().to("cuda:7")
