"""The encoders whose weights come in packages, as they are: real weights, real sentences."""

import re
from pydoc_data.topics import topics

import numpy as np
import pytest

from unembed.canvas import CanvasVocabulary, fit_to_canvas
from unembed.encoders import CATALOGUE, load_encoder
from unembed.errors import ConfigError
from unembed.store import Fingerprint

PAIRS = [
    ("A cat sleeps on the mat.", "A kitten is asleep on the rug."),
    ("Stock prices fell sharply on Monday.", "Shares dropped steeply at the start of the week."),
    ("How do I reset my password?", "I forgot my login and need a new one."),
    ("The doctor prescribed antibiotics.", "She was given medicine by her physician."),
]
NEWS = [
    f"{who} {did} {what} {when}."
    for who in ("The minister", "A spokesman for the company", "Researchers in Geneva", "Her lawyer")
    for did in ("announced", "denied", "delayed", "welcomed")
    for what in ("the new rules", "a merger with its rival", "the results of the trial")
    for when in ("on Tuesday", "after weeks of talks", "in a short letter")
]
CHAT = [
    f"{start} {rest}"
    for start in ("hey,", "ok so", "honestly", "lol")
    for rest in (
        "where are you?",
        "i lost my keys again",
        "that film was so good",
        "can you bring milk",
        "see you at 8",
    )
]


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Loads an encoder once, unpacked to a folder of the tests; skips where its package is not installed."""
    loaded = {}

    def load(name):
        if not CATALOGUE[name].installed:
            pytest.skip(f"{name} is not installed: {CATALOGUE[name].install}")
        if name not in loaded:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("UNEMBED_CACHE", str(tmp_path_factory.mktemp("cache")))
                loaded[name] = load_encoder(name, device="cpu")
        return loaded[name]

    return load


# Sentences of Python's own manual: another kind of text than those above.
MANUAL = [
    sentence
    for topic in topics.values()
    for sentence in re.findall(r"[A-Z][^.\n*`]{30,120}\.", " ".join(topic.split()))
][:400]
PACKAGED = [name for name, known in CATALOGUE.items() if not known.repository]


@pytest.mark.parametrize("name", PACKAGED)
class TestEveryPackagedEncoder:
    def test_sentences_that_mean_the_same_are_nearest_to_one_another(self, load, name):
        encoder = load(name)
        one, other = (encoder.encode([pair[side] for pair in PAIRS]) for side in (0, 1))
        assert (one @ other.T).argmax(1).tolist() == [0, 1, 2, 3]

    def test_it_is_what_the_catalogue_says(self, load, name):
        encoder, known = load(name), CATALOGUE[name]
        vectors = encoder.encode(["One text.", "Another, longer text."], batch_size=1)
        assert (vectors.shape, vectors.dtype) == ((2, known.dim), np.float32)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
        description = encoder.description
        assert (description.name, description.dim, description.pooling) == (name, known.dim, known.pooling)
        assert description.revision.startswith(f"{known.distributions[0]}==")
        kind, size = known.tokenizer.split(", ")[:2]
        assert type(encoder.tokenizer.model).__name__ == kind
        assert CanvasVocabulary.of(encoder.tokenizer).size == int(size.replace(",", ""))

    def test_texts_on_a_canvas_read_as_their_ids(self, load, name):
        tokenizer = load(name).tokenizer
        ids, said, rows = fit_to_canvas([*NEWS[:20], *CHAT], tokenizer, 8)
        assert rows == list(range(40))
        assert [encoding.ids for encoding in tokenizer.encode_batch(said, add_special_tokens=False)] == ids

    def test_no_text_gives_no_vector_and_batches_do_not_matter(self, load, name):
        encoder = load(name)
        assert encoder.encode([]).shape == (0, CATALOGUE[name].dim)
        np.testing.assert_allclose(encoder.encode(NEWS[:9]), encoder.encode(NEWS[:9], batch_size=2), atol=1e-5)


def test_granite_gives_the_vectors_of_its_own_package_s_program(load):
    """The numbers are what holographic-memory-py 0.6.3 gives for the same file: Embedder(offline=True).embed_query."""
    (vector,) = load("granite-embedding-30m-english").encode(["Where is my note?"])
    expected = [-0.03575599, 0.05559719, -0.03052984, -0.02312008, -0.03540370]
    np.testing.assert_allclose(vector[:5], expected, atol=1e-6)


def test_use_reads_texts_as_its_own_package_does(load):
    encoder = load("use-multilingual-v3")
    own = encoder._model._tokenizer
    texts = [
        *NEWS[::7],
        "  spaces \t and\nlines ",
        "Ｆｕｌｌ width ½",
        "Das Wetter ist schön.",
        "東京に行きます。",
        "<s>",
    ]
    read = encoder.tokenizer.encode_batch(texts, add_special_tokens=False)
    # A marker that somebody types is text to the package, and a special token, which no canvas holds, to us.
    assert [encoding.ids for encoding in read[:-1]] == [
        own.encode(text, add_bos=False, add_eos=False) for text in texts[:-1]
    ]


def test_use_knows_several_languages(load):
    encoder = load("use-multilingual-v3")
    english, german, other = encoder.encode(["The weather is nice.", "Das Wetter ist schön.", "Mein Auto ist kaputt."])
    assert english @ german > 0.8 > 0.5 > english @ other


def test_use_has_neither_prompt_nor_shorter_vectors(load):
    load("use-multilingual-v3")
    for option in ({"prompt": "query: "}, {"truncate_dim": 64}, {"task": "separation"}):
        with pytest.raises(ConfigError, match=f"does not support {next(iter(option))}"):
            load_encoder("use-multilingual-v3", **option)


@pytest.mark.parametrize("own", ["all-MiniLM-L6-v2", "granite-embedding-30m-english"])
def test_a_fingerprint_tells_the_two_encoders_of_384_numbers_apart(load, own):
    other = {"all-MiniLM-L6-v2": "granite-embedding-30m-english"}.get(own, "all-MiniLM-L6-v2")
    fingerprint = Fingerprint.of([load(own).encode(MANUAL).astype(np.float16)])
    assert fingerprint is not None
    same, foreign = (load(name).encode([*CHAT, *(text for pair in PAIRS for text in pair)]) for name in (own, other))
    assert fingerprint.doubts(same) == []
    assert fingerprint.doubts(foreign) != []
