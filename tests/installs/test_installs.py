"""Every documented installation does what the README promises for it, and says what to type for the rest.

Slow: ``make test-installs``. A class is one installation; ``.ci/run`` runs two of them.
"""

import json
import re
import signal
import urllib.request
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.installs

WEIGHTS = Path(__file__).parents[2] / "packages/multilingual/src/unembed_multilingual/model.safetensors"
TEXT = "Embeddings are not anonymous."
PEOPLE = ("anna", "the nurse", "our lawyer", "my brother", "the landlord")
THINGS = ("the salary list", "a long letter", "the contract")
TEXTS = [f"{who} {did} {what}." for who in PEOPLE for did in ("sent", "forgot", "sold", "read") for what in THINGS]


@pytest.fixture(scope="class")
def unembed(request, make_environment):
    environment = make_environment(*request.cls.extras, packages=request.cls.packages)
    (environment.work / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    environment.run_python(
        "import numpy; numpy.save('vectors.npy', numpy.random.default_rng(0).normal(size=(3, 384)).astype('f4'))"
    )
    return environment


@pytest.fixture(scope="class")
def database(unembed):
    """A Chroma folder with the vectors of twenty texts."""
    unembed.run_python(
        "import chromadb; from unembed import load_encoder\n"
        f"texts = {TEXTS[:20]!r}\n"
        "notes = chromadb.PersistentClient('db').create_collection('notes')\n"
        "notes.add(ids=[str(i) for i in range(20)], documents=texts, embeddings=load_encoder().encode(texts))"
    )


class Install:
    """An installation with the class's extras."""

    extras: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def test_the_command_is_the_wheel_s(self, unembed):
        assert re.fullmatch(r"unembed [\d.]+\S*\n", unembed.works("--version"))
        assert str(unembed.root) in unembed.run_python("import unembed; print(unembed.__file__)")

    def test_nothing_that_was_not_asked_for_is_installed(self, unembed):
        """Otherwise these tests would prove nothing: what torch's environment holds is seen from all of them."""
        modules = {"encoders": "sentence_transformers", "serve": "fastapi", "chroma": "chromadb", "eval": "sacrebleu"}
        modules |= {"train": "accelerate", "onnx": "onnxscript"}
        code = f"from importlib.util import find_spec; print(*[x for x, m in {modules}.items() if find_spec(m)])"
        assert set(unembed.run_python(code).split()) == {*modules} & {*self.extras}

    def test_vectors_are_inverted(self, unembed):
        lines = unembed.works("invert", "vectors.npy", "--json").splitlines()
        assert [json.loads(line)["row"] for line in lines] == [0, 1, 2]

    def test_words_are_read(self, unembed):
        assert len(unembed.works("words", "vectors.npy").splitlines()) == 3

    def test_corpora_are_prepared(self, unembed):
        assert json.loads(unembed.works("prepare", "texts.txt", "-o", "corpus", "--json"))["read"] == len(TEXTS)


class TestNone(Install):
    def test_the_wheel_holds_one_inverter_and_names_what_to_type_for_others(self, wheel, unembed):
        with zipfile.ZipFile(wheel) as files:
            assert sum(name.endswith("model.safetensors") for name in files.namelist()) == 1
        assert "pip install ./packages/multilingual" in unembed.works("inverters")
        ended = unembed.run("invert", "vectors.npy", "--model", "multilingual")
        assert ended.code == 2
        assert ended.err.splitlines()[-1].endswith("run: pip install ./packages/multilingual")

    def test_the_python_api_inverts_vectors(self, unembed):
        code = "import numpy; from unembed import Inverter\n"
        code += "for inversion in Inverter.default().invert(numpy.load('vectors.npy')): print(inversion.text)"
        assert len(unembed.run_python(code).splitlines()) == 3

    @pytest.mark.parametrize("arguments", [["invert", TEXT], ["invert", "vectors.npy", "--guided"]])
    def test_inverting_with_the_encoder_names_its_extra(self, unembed, arguments):
        unembed.lacks("encoders", *arguments)

    def test_embedding_names_its_extra(self, unembed):
        unembed.lacks("encoders", "embed", "texts.txt", "-o", "store")

    def test_serving_names_its_extra(self, unembed):
        unembed.lacks("serve", "serve", "--port", "0")

    @pytest.mark.parametrize("recipe", ["tiny", "configs/tiny.yaml"])
    def test_training_names_its_extra(self, unembed, recipe):
        unembed.lacks("train", "train", recipe)

    def test_measuring_names_its_extra(self, unembed):
        unembed.lacks("eval", "evaluate", "texts.txt")

    def test_exporting_names_its_extra(self, unembed):
        unembed.lacks("onnx", "export", "-o", "exported")

    @pytest.mark.parametrize(
        ("extra", "uri"),
        [
            ("chroma", "chroma:./db#notes"),
            ("qdrant", "qdrant:http://localhost#notes"),
            ("faiss", "faiss:notes.index"),
            ("lancedb", "lancedb:./db#notes"),
            ("pgvector", "pgvector:postgresql://localhost/db#notes.vector"),
        ],
    )
    def test_a_store_names_its_extra(self, unembed, extra, uri):
        unembed.lacks(extra, "words", uri)


@pytest.mark.skipif(not WEIGHTS.is_file(), reason="the weights of packages/multilingual are not here")
class TestMultilingual(Install):
    packages = ("multilingual",)

    def test_the_inverter_is_listed_and_reads_vectors(self, unembed):
        listed = json.loads(unembed.works("inverters", "--json"))["multilingual"]
        assert (listed["dim"], len(listed["languages"])) == (512, 14)
        unembed.run_python(
            "import numpy; numpy.save('wide.npy', numpy.random.default_rng(0).normal(size=(2, 512)).astype('f4'))"
        )
        assert len(unembed.works("invert", "wide.npy", "--model", "multilingual", "--json").splitlines()) == 2
        assert len(unembed.works("words", "wide.npy", "--model", "multilingual").splitlines()) == 2


class WithEncoders(Install):
    extras = ("encoders",)

    def test_a_text_makes_the_round_trip(self, unembed):
        out = unembed.works("invert", TEXT)
        assert re.search(r"^original +Embeddings are not anonymous\.$", out, re.MULTILINE)
        assert re.search(r"^recovered +\S", out, re.MULTILINE)


class TestEncoders(WithEncoders):
    def test_a_text_is_searched_with_the_encoder(self, unembed):
        (line,) = unembed.works("invert", TEXT, "--guided", "--rounds", "2", "--json").splitlines()
        assert json.loads(line)["encoder_calls"] > 0

    def test_a_corpus_is_embedded(self, unembed):
        rows = json.loads(unembed.works("embed", "texts.txt", "-o", "store", "--json"))
        assert rows["store"]["rows"] == len(TEXTS)


class Serving(WithEncoders):
    def test_the_server_answers(self, unembed):
        process = unembed.start("serve", "--port", "0")
        try:
            address = next(match[0] for line in process.stderr if (match := re.search(r"http://\S+", line)))
            assert json.load(urllib.request.urlopen(f"{address}/health", timeout=60))
            assert b"<html" in urllib.request.urlopen(address, timeout=60).read().lower()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        assert process.returncode == 0


class TestEncodersServe(Serving):
    extras = ("encoders", "serve")


@pytest.mark.usefixtures("database")
class Chroma(WithEncoders):
    def test_a_store_s_words_are_read(self, unembed):
        out = unembed.works("words", "chroma:./db#notes", "--find", "salary", "--json")
        assert all("salary" in json.loads(line)["words"] for line in out.splitlines())

    def test_a_store_is_inverted(self, unembed):
        assert len(unembed.works("invert", "chroma:./db#notes", "--limit", "2", "--json").splitlines()) == 2

    def test_a_store_is_audited(self, unembed):
        ended = unembed.run("audit", "chroma:./db#notes", "-o", "audit", "--guided", "1", "--bootstrap", "20")
        assert ended.code in (0, 3, 4), ended.err
        assert (unembed.work / "audit" / "report.html").is_file()


class TestEncodersChroma(Chroma):
    extras = ("encoders", "chroma")


class TestEncodersEvalServeChroma(Serving, Chroma):
    extras = ("encoders", "eval", "serve", "chroma")

    def test_texts_are_measured(self, unembed):
        arguments = ["--strategy", "confidence", "--protocol", "natural", "--limit", "10", "--bootstrap", "20"]
        unembed.works("evaluate", "texts.txt", "-o", "evaluation", *arguments)
        assert (unembed.work / "evaluation" / "report.md").is_file()


class TestEncodersTrain(WithEncoders):
    extras = ("encoders", "train")

    def test_an_inverter_is_trained_and_used(self, unembed):
        unembed.works("prepare", "texts.txt", "-o", "corpus", "--validation-share", "0.2")
        unembed.works("embed", "corpus", "-o", "store", "--canvas-length", "32")
        ended = json.loads(
            unembed.works("train", "tiny", "--store", "store", "-o", "run", "--max-minutes", "0.1", "--json")
        )
        assert ended["step"] > 0
        unembed.works("invert", TEXT, "--model", "run/latest")
