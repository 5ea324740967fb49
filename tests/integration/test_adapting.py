"""Adapting the default inverter to another encoder: here MiniLM behind a secret rotation into more dimensions."""

import json
import runpy
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from unembed import Inverter
from unembed.adaptation import tuning
from unembed.alignment import LEAST_PAIRS
from unembed.corpus import bundled_texts
from unembed.encoders import Encoder, EncoderDescription, endpoint
from unembed.errors import CheckpointError, ConfigError, EncoderError, VectorError

ROOT = Path(__file__).parents[2]
PAIRS = 250
LEAKED = 3500
OURS = ["The cat is sleeping on the sofa.", "She bought a new car last week.", "how to make bread at home"]


class RotatedEncoder:
    """Another encoder: MiniLM's vectors, rotated into 400 dimensions and shifted."""

    tokenizer = None

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        random = np.random.default_rng(0)
        self._rotation = np.linalg.qr(random.normal(size=(400, 384)))[0].T
        self._shift = 0.02 * random.normal(size=400)
        self.fails_after: int | None = None
        self.drifts = 0.0
        self.seen: list[str] = []
        self.description = EncoderDescription(
            name="rotated", revision="1", dim=400, prompt=None, pooling="mean", normalised=False
        )

    def encode(self, sentences: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = False) -> np.ndarray:
        if self.fails_after is not None and len(self.seen) + len(sentences) > self.fails_after:
            raise EncoderError("The endpoint did not answer.", "Run the same command again.")
        self.seen += sentences
        self._shift = self._shift + self.drifts * np.random.default_rng(len(self.seen)).normal(size=400)
        vectors: np.ndarray = self._encoder.encode(sentences) @ self._rotation + self._shift
        return vectors.astype(np.float32)


@pytest.fixture
def rotated(minilm) -> RotatedEncoder:
    return RotatedEncoder(minilm)


@pytest.fixture(scope="module")
def base() -> Inverter:
    return Inverter.default(device="cpu")


@pytest.fixture(scope="module")
def adapted_folder(base, minilm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapted") / "rotated"
    adapted = base.adapt(RotatedEncoder(minilm), bundled_texts()[:PAIRS], own_encoder=minilm)
    adapted.save_pretrained(folder)
    return folder


def test_an_adapted_inverter_reads_the_other_encoders_vectors(adapted_folder, base, rotated, minilm):
    adapted = Inverter.from_pretrained(adapted_folder, device="cpu")
    theirs, ours = adapted.words(rotated.encode(OURS), top=12), base.words(minilm.encode(OURS), top=12)
    for named, wanted in zip(theirs, ours, strict=True):
        assert len({word for word, _ in named} & {word for word, _ in wanted}) >= 6
    texts = [inversion.text for inversion in adapted.invert(rotated.encode(OURS))]
    assert "cat" in texts[0]
    assert "car" in texts[1]
    assert "bread" in texts[2]


def test_it_says_what_it_is_and_what_to_expect(adapted_folder, base):
    adapted = Inverter.from_pretrained(adapted_folder, device="cpu")
    assert (adapted.info.encoder.name, adapted.info.encoder.dim) == ("rotated", 400)
    how = adapted.adaptation.info
    assert (how.base, how.pairs) == ("default", PAIRS)
    assert how.metrics["map_cosine"] > 0.7
    assert how.metrics["mapped_readout_f1"] <= how.metrics["tuned_readout_f1"] <= how.metrics["base_readout_f1"]
    assert sum(path.stat().st_size for path in adapted_folder.iterdir()) < 8e6
    assert "An inverter for rotated, adapted" in (adapted_folder / "README.md").read_text()
    # The base is as it was.
    again = Inverter.default(device="cpu").model.state_dict()
    assert all((again[name] == part).all() for name, part in base.model.state_dict().items())


def test_it_knows_what_the_other_encoders_vectors_look_like(adapted_folder, rotated):
    adapted = Inverter.from_pretrained(adapted_folder, device="cpu")
    assert adapted.warnings(rotated.encode(OURS)) == []
    assert adapted.info.fingerprint.norm == pytest.approx(np.linalg.norm(rotated.encode(OURS), axis=1).mean(), rel=0.1)
    with pytest.raises(VectorError, match="400 numbers"):
        adapted.invert(np.ones((1, 384)))


def test_texts_that_the_other_encoder_is_not_asked_for_help(base, rotated, minilm):
    texts = bundled_texts()
    pairs, others, unseen = texts[:60], texts[60:460], texts[5000:5060]
    alone = base.adapt(rotated, pairs, own_encoder=minilm)
    asked = len(rotated.seen)
    helped = base.adapt(rotated, pairs, others=others, own_encoder=minilm)
    assert len(rotated.seen) == 2 * asked
    known = [(inverter.adaptation.info.pairs, inverter.adaptation.info.others) for inverter in (alone, helped)]
    assert known == [(len(pairs), 0), (len(pairs), len(others))]
    vectors = rotated.encode(unseen)

    def count_hits(inverter: Inverter) -> int:
        named = inverter.words(vectors, top=10)
        return sum(word in text for text, words in zip(unseen, named, strict=True) for word, _ in words)

    assert count_hits(helped) > count_hits(alone)


@pytest.mark.parametrize("strategy", ["guided", "surrogate"])
def test_searches_work_with_the_other_encoders_vectors(adapted_folder, rotated, strategy):
    adapted = Inverter.from_pretrained(adapted_folder, device="cpu")
    vector = rotated.encode(OURS[:1])
    blind = adapted.invert(vector)[0]
    encoder = rotated if strategy == "guided" else None
    found = adapted.invert(vector, strategy=strategy, encoder=encoder, **{strategy: {"calls": 100}})[0]
    before, after = (_cosine(rotated.encode([text])[0], vector[0]) for text in (blind.text, found.text))
    assert after >= (before if strategy == "guided" else 0.5)
    assert (found.encoder_calls > 0) == (strategy == "guided")
    assert (found.surrogate_calls > 0) == (strategy == "surrogate")


def test_saving_an_adapted_inverter_again_gives_the_same(adapted_folder, rotated, tmp_path):
    adapted = Inverter.from_pretrained(adapted_folder, device="cpu")
    adapted.save_pretrained(tmp_path / "again")
    again = Inverter.from_pretrained(tmp_path / "again", device="cpu")
    vectors = rotated.encode(OURS)
    assert [each.text for each in again.invert(vectors)] == [each.text for each in adapted.invert(vectors)]


def test_an_adapted_inverter_cannot_be_adapted_or_run_elsewhere(adapted_folder, rotated, minilm):
    adapted = Inverter.from_pretrained(adapted_folder, device="cpu")
    with pytest.raises(ConfigError, match="adapted itself"):
        adapted.adapt(rotated, bundled_texts()[:LEAST_PAIRS], own_encoder=minilm)
    with pytest.raises(ConfigError, match="torch only"):
        Inverter.from_pretrained(adapted_folder, engine="onnx")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: _edit(folder, base_checksum="0"), "has changed since"),
        (lambda folder: _edit(folder, base=str(folder / "gone")), "no folder"),
        (lambda folder: _edit(folder, pairs="many"), "not the configuration"),
        (lambda folder: (folder / "adaptation.safetensors").write_bytes(b"no"), "damaged"),
        (lambda folder: (folder / "adaptation.safetensors").unlink(), "damaged"),
        (lambda folder: _edit(folder, width=8), "damaged or does not belong"),
    ],
)
def test_a_damaged_adapted_inverter_is_refused_with_the_reason(adapted_folder, tmp_path, damage, message):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in adapted_folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    damage(folder)
    with pytest.raises(CheckpointError, match=message):
        Inverter.from_pretrained(folder)


def test_an_endpoint_that_fails_midway_is_not_asked_twice(base, rotated, minilm, tmp_path, monkeypatch, run_cli):
    monkeypatch.setattr("unembed.encoders.load_encoder", lambda name, **options: rotated)
    monkeypatch.setattr(Inverter, "load_encoder", lambda self, **options: minilm)
    arguments = ("adapt", "rotated", "--output", tmp_path / "out", "--pairs", 300, "--json")
    rotated.fails_after = 280
    assert run_cli(*arguments).code == 2
    assert len(rotated.seen) == 256
    rotated.fails_after = None
    ended = run_cli(*arguments)
    assert ended.code == 0
    assert json.loads(ended.out)["pairs"] == len(set(rotated.seen))
    assert len(rotated.seen) <= 300 + 4  # four are repeated, to see whether the encoder stays the same
    assert Inverter.from_pretrained(tmp_path / "out").adaptation is not None


@pytest.fixture
def address(rotated, monkeypatch):
    """The other encoder behind a real server, that of the example in docs/encoders.md."""
    monkeypatch.delenv("UNEMBED_API_KEY", raising=False)
    make_server = runpy.run_path(str(ROOT / "examples" / "endpoint.py"))["make_server"]
    server = make_server(rotated, 0)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1#rotated"
    server.shutdown()
    server.server_close()


def test_an_endpoint_is_adapted_to_over_http(address, rotated, tmp_path, monkeypatch, run_cli):
    monkeypatch.setattr(endpoint, "_ATTEMPTS", 1)
    folder = tmp_path / "out"
    arguments = ("adapt", address, "--output", folder, "--pairs", 300, "--price", 0.02)
    rotated.fails_after = 270  # the probe of the connection is one of them
    failed = run_cli(*arguments)
    assert failed.code == 2
    assert "tokens in 10 requests" in failed.err
    assert "at 0.02 a million" in failed.err
    assert "did not answer" in failed.err
    rotated.fails_after = None
    assert run_cli(*arguments).code == 0
    repeated = [text for text, times in Counter(rotated.seen).items() if times > 1]
    assert len(repeated) <= 16 + 4 + 1  # what was answered after the last save, the check, the probe

    np.save(tmp_path / "vectors.npy", rotated.encode(OURS[:1]))
    read = run_cli("invert", tmp_path / "vectors.npy", "--model", folder)
    assert (read.code, "cat" in read.out) == (0, True)
    guided = ("invert", tmp_path / "vectors.npy", "--model", folder, "--guided", "--calls", 60)
    refused = run_cli(*guided)
    assert refused.code == 2
    assert "--encoder" in refused.err
    before = len(rotated.seen)
    searched = run_cli(*guided, "--encoder", address)
    assert (searched.code, "cat" in searched.out) == (0, True)
    assert 1 < len(rotated.seen) - before <= 80


def test_an_encoder_that_changes_between_calls_is_refused(base, rotated, minilm):
    rotated.drifts = 0.05
    with pytest.raises(EncoderError, match="another vector than a moment ago"):
        base.adapt(rotated, bundled_texts()[:LEAST_PAIRS], own_encoder=minilm)


def test_leaked_pairs_of_a_store_do_without_the_encoder(rotated, minilm, tmp_path, monkeypatch, run_cli):
    monkeypatch.setattr(Inverter, "load_encoder", lambda self, **options: minilm)
    texts = bundled_texts()[:200]
    lines = [
        json.dumps({"embedding": vector.tolist(), "text": text})
        for vector, text in zip(rotated.encode(texts), texts, strict=True)
    ]
    (tmp_path / "leaked.jsonl").write_text("\n".join(lines))
    leaked = tmp_path / "leaked.jsonl"
    ended = run_cli("adapt", "unknown", "--pairs-from", leaked, "--output", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "from 200 pairs" in ended.out
    adapted = Inverter.from_pretrained(tmp_path / "out", device="cpu")
    assert "cat" in dict(adapted.words(rotated.encode(OURS[:1]))[0])
    swapped = [json.loads(line) | {"text": text} for line, text in zip(lines, reversed(texts), strict=True)]
    (tmp_path / "swapped.jsonl").write_text("\n".join(map(json.dumps, swapped)))
    refused = run_cli("adapt", "unknown", "--pairs-from", tmp_path / "swapped.jsonl", "--output", tmp_path / "no")
    assert refused.code == 2
    assert "do not belong together" in refused.err
    assert not (tmp_path / "no" / "config.json").exists()


def test_too_few_texts_are_refused(minilm, tmp_path, run_cli, monkeypatch):
    monkeypatch.setattr(Inverter, "load_encoder", lambda self, **options: minilm)
    (tmp_path / "few.txt").write_text("one text\nanother text\n")
    ended = run_cli("adapt", "all-MiniLM-L6-v2", "--texts", tmp_path / "few.txt", "--output", tmp_path / "out")
    assert ended.code == 2
    assert "at least 50 are needed" in ended.err
    both = ("--texts", tmp_path / "few.txt", "--pairs-from", "x.npy")
    assert "exclude each other" in run_cli("adapt", "any", *both, "--output", tmp_path / "out").err


@pytest.fixture(scope="module")
def unpaired(base, minilm) -> Inverter:
    """Adapted with vectors of texts that nobody knows, and other texts of the same kind."""
    texts = bundled_texts()
    leaked = RotatedEncoder(minilm).encode(texts[:LEAKED])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tuning, "_MOST_STEPS", 20)
        patched.setattr(tuning, "_FEWEST_STEPS", 20)
        return base.adapt_unpaired(leaked, texts[LEAKED : 2 * LEAKED], encoder="rotated", own_encoder=minilm)


def test_vectors_alone_are_enough_where_texts_of_the_same_kind_are_at_hand(unpaired, minilm):
    vectors = RotatedEncoder(minilm).encode(OURS)
    mapped = unpaired.adaptation.there.map_array(vectors)
    assert (mapped * minilm.encode(OURS)).sum(1).mean() > 0.7
    words = {word for word, _ in unpaired.words(vectors[:1], top=12)[0]}
    assert {"cat", "sleeping"} & words


def test_an_inverter_adapted_without_pairs_says_so(unpaired, tmp_path):
    unpaired.save_pretrained(tmp_path / "rotated")
    facts = json.loads((tmp_path / "rotated" / "config.json").read_text())
    assert (facts["method"], facts["pairs"], facts["encoder"]["name"]) == ("unpaired", 0, "rotated")
    assert facts["metrics"]["agreement"] > 0.5
    assert "held-out vectors" in (tmp_path / "rotated" / "README.md").read_text()
    loaded = Inverter.from_pretrained(str(tmp_path / "rotated"), device="cpu")
    assert loaded.info.encoder.dim == 400


def test_vectors_of_nothing_are_refused(minilm, tmp_path, monkeypatch, run_cli):
    monkeypatch.setattr(Inverter, "load_encoder", lambda self, **options: minilm)
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).normal(size=(2000, 400)).astype(np.float32))
    (tmp_path / "texts.txt").write_text("\n".join(bundled_texts()[:2000]))
    arguments = ("adapt", "unknown", "--unpaired", tmp_path / "noise.npy", "--output", tmp_path / "out")
    ended = run_cli(*arguments, "--texts", tmp_path / "texts.txt")
    assert ended.code == 2
    assert "No map was found that deserves trust" in ended.err
    assert not (tmp_path / "out" / "config.json").exists()
    assert "--unpaired needs texts of the same kind" in run_cli(*arguments).err
    assert "exclude each other" in run_cli(*arguments, "--pairs-from", tmp_path / "noise.npy").err


def _edit(folder, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
