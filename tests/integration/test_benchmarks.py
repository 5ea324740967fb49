"""The benchmarks run; what they measure is not for tests, which share their machine."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"


@pytest.mark.parametrize("names", [("training", "peak"), ("decoding",), ("words",), ("serving",)], ids=" and ".join)
def test_a_smoke_run_writes_its_page(tmp_path, names):
    command = [sys.executable, str(RUN), "--quick", "--only", *names, "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "A smoke run" in (tmp_path / "results.md").read_text()
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    assert set(results) == set(names)
    assert all(result["figures"] for result in results.values())


def test_the_audit_benchmark_compares_measured_with_estimated_figures(tmp_path):
    script = RUN.with_name("audit.py")
    command = [sys.executable, str(script), "--quick", "--work", str(tmp_path), "--json", str(tmp_path / "result.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert [row[2] for row in result["rows"]] == ["readable", "passage_recall", "token_f1", "unseen"]
    assert "Verdicts that contradict each other: 0 of 1" in done.stdout


def test_the_overhead_of_an_audit_is_told_from_its_decoding(tmp_path):
    place = tmp_path / "result.json"
    command = [sys.executable, str(RUN.with_name("audit_overhead.py")), "--quick", "--json", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(place.read_text())
    assert result["figures"][0]["value"] > 0
    seconds, decoding = map(float, result["rows"][0][1:3])
    assert seconds > decoding > 0


@pytest.fixture
def tiny_inverter(tmp_path, minilm):
    """Saves an inverter for all-MiniLM-L6-v2 that has learnt nothing, and returns its folder."""
    from unembed.canvas import CanvasVocabulary, tokenizer_hash
    from unembed.checkpoint import Checkpoint, CheckpointInfo, save_checkpoint
    from unembed.config import ModelConfig, NoiseConfig
    from unembed.model import ConditionalMDLM

    vocabulary = CanvasVocabulary.of(minilm.tokenizer)
    config = ModelConfig(
        embedding_dim=384,
        vocabulary_size=vocabulary.size,
        canvas_length=6,
        layers=1,
        width=8,
        heads=1,
        feedforward=8,
        readout={"kind": "mlp", "bottleneck": 4},
    )
    info = CheckpointInfo(
        encoder=minilm.description,
        model=config,
        noise=NoiseConfig(),
        special_ids=vocabulary.special,
        tokenizer_hash=tokenizer_hash(minilm.tokenizer),
        training_rows=0,
    )
    save_checkpoint(tmp_path / "inverter", Checkpoint(ConditionalMDLM(config, vocabulary), minilm.tokenizer, info))
    return tmp_path / "inverter"


def test_the_decoding_benchmark_measures_the_token_accuracy_of_an_inverter_on_texts(tmp_path, tiny_inverter):
    texts = ["the old man drinks tea at home.", "a bird sings in the tall tree.", "two dogs play in the deep snow."]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    place = tmp_path / "result.json"
    command = [sys.executable, str(RUN.with_name("decoding.py")), "--quick", "--json", str(place)]
    command += ["--model", str(tiny_inverter), "--texts", str(tmp_path / "texts.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(place.read_text())
    assert result["columns"][-1] == "token accuracy"
    assert any("lost by ONNX int8" in figure["name"] for figure in result["figures"])
    assert "n = 3" in result["notes"][0]
    by_name = {row[0]: row for row in result["rows"]}
    assert by_name["sequential"][-2] == "100.0%"


def test_the_capacity_benchmark_cuts_texts_and_compares_blind_with_guided(tmp_path):
    place, picture = tmp_path / "result.json", tmp_path / "capacity.png"
    command = [sys.executable, str(RUN.with_name("capacity.py")), "--quick", "--json", str(place)]
    done = subprocess.run([*command, "--picture", str(picture)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(place.read_text())
    assert [row[:3] for row in result["rows"]] == [["8", "default, blind", "1"], ["8", "default, guided", "1"]]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_length_benchmark_says_how_often_texts_are_taken_for_longer_ones():
    command = [sys.executable, str(RUN.with_name("extent.py")), "--cut", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| our own | cut to 4 | 2 | 4 |" in done.stdout


def test_the_filling_benchmark_reports_each_kind_of_case_in_both_ways(tmp_path):
    place = tmp_path / "result.json"
    command = [sys.executable, str(RUN.with_name("filling.py")), "--quick", "--json", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(place.read_text())
    assert [row[1] for row in result["rows"]] == ["encoder", "blind"] * 3
    (figure,) = result["figures"]
    assert figure["value"] >= 0.5, "of two names among 20, with the encoder"
    missing = next(row for row in result["rows"] if "missing" in row[0])
    assert missing[4].startswith("0.00")
    assert "calibration error" in result["notes"][1]


class TestLanguages:
    LINES = (
        "de\tDie Rechnung {} ist noch offen.",
        "zh\t会议上讨论了合同{}。",
        "sv\tFakturan {} är inte betald.",
    )

    @pytest.fixture
    def folder(self, tmp_path):
        with gzip.open(tmp_path / "corpus.tsv.gz", "wt", encoding="utf-8") as lines:
            for number in range(60):
                lines.writelines(f"{line.format(number)}\n" for line in self.LINES)
        self.run("split", tmp_path / "corpus.tsv.gz", "--output", tmp_path / "languages")
        return tmp_path / "languages"

    def run(self, *arguments):
        command = [sys.executable, str(RUN.with_name("languages.py")), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_lines_of_languages_that_the_encoder_knows_are_divided_by_their_hash(self, folder):
        held = {path.name: path.read_text().splitlines() for path in folder.glob("heldout-*.txt")}
        other = (folder / "other.txt").read_text().splitlines()
        assert set(held) == {"heldout-de.txt"}, "the Chinese lines are too short to be held out"
        assert 2 <= len(held["heldout-de.txt"]) <= 20
        assert len(held["heldout-de.txt"]) + len(other) == 120
        assert not set(held["heldout-de.txt"]) & set(other)
        assert not any("Fakturan" in line for line in other)

    def test_each_language_is_a_row_with_its_figures(self, folder, tmp_path, tiny_inverter):
        (tmp_path / "english.txt").write_text("The bill is due.\nTwo dogs.\nHow old is she?\n")
        place = tmp_path / "result.json"
        options = ["--english", tmp_path / "english.txt", "--beside", tiny_inverter, "--quick", "--json", place]
        (folder / "heldout-zh.txt").write_text("开会\n合同\n日本\n")
        (folder / "heldout-de.txt").write_text("Guten Tag\nDanke\nBis morgen\n")
        out = self.run("evaluate", folder, "--model", tiny_inverter, "--show", 1, *options)
        result = json.loads(place.read_text())
        assert {row[0] for row in result["rows"][:3]} == {"Chinese", "English", "German"}
        assert result["rows"][3][0] == "English"
        assert result["columns"][3:6] == ["token F1", "cosine", "exact match"]
        assert "| language | token F1 | original | recovered |" in out

    def test_words_are_counted_by_characters_where_there_are_no_spaces(self):
        sys.path.append(str(RUN.parent))
        from languages import word_recall

        common = frozenset(("die", "ist"))
        assert word_recall("Die Rechnung ist offen", ["rechnung", "Haus"], common) == 0.5
        assert word_recall("会议讨论了合同", ["会议", "合同", "日本"], common) == pytest.approx(4 / 6)
        assert word_recall("42", ["x"], common) is None


def test_the_adapting_benchmark_compares_adapted_inverters_with_their_base(tmp_path):
    (tmp_path / "texts.txt").write_text("Two dogs play in the snow.\nHow old is the moon?\nThe train is late again.\n")
    result = run_adapting(tmp_path, "granite-embedding-30m-english", str(tmp_path / "texts.txt"))
    assert [row[:4] for row in result["rows"]] == [
        ["texts", "default, given its own vectors", "blind", "3"],
        ["texts", "60 pairs", "blind", "3"],
    ]
    assert all(row[result["columns"].index("cosine")] for row in result["rows"])
    assert (tmp_path / "cache" / "granite-embedding-30m-english").is_dir()


def test_the_adapting_benchmark_reads_leaked_vectors_without_their_encoder(tmp_path, minilm):
    import numpy as np

    from unembed.corpus import bundled_texts

    texts = bundled_texts()[:80]
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(384, 384)))[0]
    np.save(tmp_path / "vectors.npy", minilm.encode(texts) @ turned)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    leaked = ["--vectors", str(tmp_path / "vectors.npy"), "--vector-texts", str(tmp_path / "texts.txt")]
    result = run_adapting(tmp_path, "an-unknown-encoder", *leaked)
    assert [row[1] for row in result["rows"]] == ["default, given its own vectors", "60 pairs"]
    assert result["rows"][1][result["columns"].index("cosine")] == ""
    assert len(result["times"]["leaked texts, 60 pairs"]) == 3


def run_adapting(folder, *arguments):
    place = folder / "result.json"
    command = [sys.executable, str(RUN.with_name("adapting.py")), *arguments, "--quick", "--json", str(place)]
    done = subprocess.run([*command, "--cache", str(folder / "cache")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(place.read_text())
