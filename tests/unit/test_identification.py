"""Which encoder made vectors: by their texts, by what the database says, by fingerprints."""

import zlib

import numpy as np
import pytest

from unembed.connectors import StorageInfo
from unembed.encoders import CATALOGUE, EncoderDescription
from unembed.errors import EncoderError, MissingExtraError, VectorError
from unembed.identification import KnownVectors, identify, known_vectors
from unembed.identification.agreement import compare
from unembed.identification.identify import adapt_command
from unembed.identification.known import ELSEWHERE, PROMPTS, dimension_of
from unembed.store import Fingerprint

DIM = 48
TEXTS = [f"text number {number}" for number in range(300)]


class HashEncoder:
    """Gives each text a random vector around a mean that depends on the encoder's name."""

    tokenizer = None

    def __init__(self, name: str, *, own_mean: float = 1.0, dim: int = DIM) -> None:
        self.description = EncoderDescription(
            name=name, revision="1", dim=dim, prompt=None, pooling="mean", normalised=True
        )
        self._mean = own_mean * np.random.default_rng(zlib.crc32(name.encode())).normal(size=dim)
        self.seen: list[str] = []

    def encode(self, sentences, *, batch_size=32, show_progress_bar=False):
        self.seen += sentences
        seeds = [zlib.crc32(f"{self.description.name} {text}".encode()) for text in sentences]
        drawn = self._mean + np.stack([np.random.default_rng(seed).normal(size=len(self._mean)) for seed in seeds])
        return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


RED, BLUE, GREEN = (HashEncoder(name) for name in ("red", "blue", "green"))


def known(*encoders, prompt=""):
    made = (
        (encoder, Fingerprint.of([encoder.encode([f"{prompt}other {text}" for text in TEXTS])])) for encoder in encoders
    )
    return [KnownVectors(encoder.description.name, prompt, fingerprint) for encoder, fingerprint in made]


def asked(*encoders):
    return {encoder.description.name: lambda encoder=encoder: encoder for encoder in encoders}


def standings(found):
    return {candidate.name: candidate.standing for candidate in found.candidates}


class TestTexts:
    def test_the_encoder_that_gives_the_stored_vectors_again_made_them(self):
        found = identify(BLUE.encode(TEXTS), TEXTS, encoders=asked(RED, BLUE), known=[])
        assert (found.verdict, found.name, found.texts) == ("identified", "blue", 32)
        assert "for 32 of 32 stored texts" in found.because
        assert standings(found) == {"blue": "texts agree", "red": "excluded"}

    def test_they_decide_against_the_database_and_the_fingerprint(self):
        said = StorageInfo("x", encoder="org/Red", encoder_said_by="its metadata")
        found = identify(BLUE.encode(TEXTS), TEXTS, storage=said, encoders=asked(RED, BLUE), known=known(RED))
        assert (found.verdict, found.name) == ("identified", "blue")
        assert "The database names 'org/Red', which contradicts the vectors." in found.because

    @pytest.mark.parametrize("stored", ["passage: ", "query: ", ""])
    def test_the_prompt_is_found_too(self, stored):
        e5 = HashEncoder("multilingual-e5-small", own_mean=2.0, dim=DIM)
        vectors = e5.encode([stored + text for text in TEXTS[:20]])
        found = identify(vectors, TEXTS[:20], encoders=asked(e5), known=[])
        assert (found.verdict, found.prompt) == ("identified", stored)
        assert ("--prompt" in found.advice) == (stored != "passage: ")

    def test_the_likeliest_is_asked_first_and_the_others_are_then_left_alone(self):
        quiet = HashEncoder("quiet")
        found = identify(BLUE.encode(TEXTS), TEXTS, encoders=asked(quiet, BLUE), known=known(BLUE))
        assert found.name == "blue"
        assert quiet.seen == []

    def test_texts_that_were_changed_agree_in_part(self):
        vectors = RED.encode(TEXTS) + 0.8 * BLUE.encode(TEXTS)
        found = identify(vectors, TEXTS, encoders=asked(RED), known=[])
        assert (found.verdict, found.name) == ("likely", "red")
        assert "similar to the stored ones, but not the same" in found.because

    def test_vectors_that_all_point_one_way_do_not_agree_by_that_alone(self):
        narrow = HashEncoder("narrow", own_mean=3.0)
        agreement = compare(narrow, TEXTS[:32], narrow.encode(TEXTS[100:132]))
        assert agreement.median > 0.8
        assert not agreement.in_part

    def test_only_texts_that_are_there_are_compared_each_once(self):
        texts = ["same text", "same text", None, " ", "another text"]
        vectors = RED.encode([text or "lost" for text in texts])
        quiet = HashEncoder("red")
        found = identify(vectors, texts, encoders=asked(quiet), known=[])
        assert (found.verdict, found.texts, quiet.seen) == ("identified", 2, ["same text", "another text"])

    def test_an_encoder_that_cannot_be_loaded_is_no_reason_to_stop(self):
        def fail():
            raise MissingExtraError("This needs onnx, which is not installed.")

        found = identify(RED.encode(TEXTS), TEXTS, encoders={"broken": fail} | asked(RED), known=[])
        assert found.name == "red"
        (broken,) = (candidate for candidate in found.candidates if candidate.name == "broken")
        assert "This needs onnx" in broken.evidence[-1]

    def test_an_encoder_of_another_dimension_is_refused(self):
        with pytest.raises(EncoderError, match="wide gives 64 numbers; the vectors have 48"):
            identify(RED.encode(TEXTS), TEXTS, encoders=asked(HashEncoder("wide", dim=64)), known=[])


class TestDatabase:
    def test_what_it_says_is_likely_if_nothing_contradicts(self):
        said = StorageInfo("x", encoder="text-embedding-9", encoder_said_by="its metadata")
        found = identify(RED.encode(TEXTS), storage=said, known=[])
        assert (found.verdict, found.name) == ("likely", "text-embedding-9")
        assert "unembed train" in found.advice

    def test_a_fingerprint_can_contradict(self):
        said = StorageInfo("x", encoder="org/red", encoder_said_by="its metadata")
        found = identify(BLUE.encode(TEXTS), storage=said, known=known(RED, BLUE))
        assert (found.verdict, found.name) == ("likely", "blue")
        assert "contradicts" in found.because

    def test_an_encoder_of_another_dimension_cannot_have_made_them(self):
        said = StorageInfo("x", encoder="text-embedding-ada-002", encoder_said_by="its metadata")
        found = identify(RED.encode(TEXTS), storage=said, known=[])
        assert (found.verdict, found.name) == ("unknown", None)
        assert "names 'text-embedding-ada-002', which contradicts the vectors" in found.because


class TestFingerprints:
    @pytest.mark.parametrize("rows", [8, 64, 300])
    def test_the_only_one_that_fits_is_likely(self, rows):
        found = identify(BLUE.encode(TEXTS[:rows]), known=known(RED, BLUE, GREEN))
        assert (found.verdict, found.name) == ("likely", "blue")
        assert standings(found) == {"blue": "fits", "red": "excluded", "green": "excluded"}
        assert "cannot be excluded" in found.because

    def test_several_that_fit_are_undecided_and_texts_would_decide(self):
        twin = KnownVectors("twin", "", known(BLUE)[0].fingerprint)
        found = identify(BLUE.encode(TEXTS), known=[*known(RED, BLUE), twin])
        assert (found.verdict, found.name) == ("undecided", None)
        assert "Several encoders fit: blue, twin" in found.because
        assert "texts" in found.advice

    def test_none_that_fits_is_unknown(self):
        found = identify(GREEN.encode(TEXTS), known=known(RED, BLUE))
        assert (found.verdict, found.name) == ("unknown", None)
        assert "None of the 2 encoders of 48 numbers" in found.because

    def test_an_encoder_is_known_by_each_of_its_prompts(self):
        prompted = [KnownVectors("colours", one.encoder, one.fingerprint) for one in known(RED, BLUE)]
        found = identify(BLUE.encode(TEXTS), known=prompted)
        assert (found.name, found.prompt) == ("colours", "blue")

    @pytest.mark.parametrize("rows", [8, 64])
    def test_vectors_in_8_bits_are_recognised(self, rows):
        vectors = BLUE.encode(TEXTS[:rows])
        codes = np.rint(127 * vectors / np.abs(vectors).max(axis=1, keepdims=True)).astype(np.int8)
        found = identify(codes, known=known(RED, BLUE))
        assert (found.verdict, found.name) == ("likely", "blue")
        assert "rounded to whole numbers" in found.because
        found = identify(codes, TEXTS[:rows], encoders=asked(RED, BLUE), known=[])
        assert (found.verdict, found.name) == ("identified", "blue")

    def test_no_known_encoder_has_this_dimension(self):
        found = identify(np.ones((3, 7)), known=known(RED))
        assert (found.verdict, found.candidates) == ("unknown", [])
        assert "No known encoder gives 7 numbers." in found.because

    def test_encoders_that_are_not_here_are_named_by_their_dimension(self):
        found = identify(np.random.default_rng(0).normal(size=(5, 1536)))
        assert found.verdict == "unknown"
        assert standings(found)["text-embedding-3-small"] == "dimension only"
        assert found.candidates[0].evidence == ["Only its dimension is known here."]


@pytest.mark.parametrize("vectors", [np.zeros((0, 48)), np.ones(48)])
def test_no_vectors_are_an_error(vectors):
    with pytest.raises(VectorError, match="no vectors"):
        identify(vectors)


def test_vectors_that_no_encoder_makes_are_an_error():
    with pytest.raises(VectorError, match="1 of the vectors are not finite"):
        identify(np.array([[1.0, 2.0], [np.nan, 1.0]]))


class TestKnownEncoders:
    def test_the_fingerprints_of_the_package_are_of_encoders_in_the_catalogue(self):
        for entry in known_vectors():
            assert entry.dim == CATALOGUE[entry.encoder].dim
            assert entry.prompt in PROMPTS.get(entry.encoder, ("",))
            assert entry.fingerprint.rows >= 1000

    def test_prompts_are_of_encoders_in_the_catalogue_and_no_encoder_is_listed_twice(self):
        assert set(PROMPTS) <= set(CATALOGUE)
        names = [name for names in ELSEWHERE.values() for name in names]
        assert len({*names, *CATALOGUE}) == len(names) + len(CATALOGUE)

    def test_a_dimension_is_found_with_or_without_the_organisation(self):
        assert dimension_of("BAAI/bge-small-en-v1.5") == 384
        assert dimension_of("text-embedding-3-large") == 3072
        assert dimension_of("my-encoder") is None

    def test_the_command_names_a_prompt_only_if_it_is_not_the_usual_one(self):
        assert (
            adapt_command("bge-small-en-v1.5", "") == "unembed adapt bge-small-en-v1.5 --output work/bge-small-en-v1.5"
        )
        assert "--prompt 'query: '" in adapt_command("multilingual-e5-small", "query: ")
