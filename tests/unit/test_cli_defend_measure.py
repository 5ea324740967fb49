"""``unembed defend`` on a real store with a tiny model: what is measured, written and refused."""

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_cli_audit import Page

import stores

SOMEBODY = ("king", "queen", "cat", "dog", "boy", "girl", "teacher", "doctor", "bird", "horse", "woman", "man")
DOING = ("sleeps at home", "walks in the park", "drinks cold water", "reads a good book", "runs to the sea")
TEXTS = [f"the {who} {what}." for who in SOMEBODY for what in DOING]
OWN = [f"a {who} {what} today" for who in SOMEBODY for what in DOING]


@pytest.fixture
def with_encoder(fake_encoder, monkeypatch):
    """Lets the command find the encoder, which no name can load."""
    monkeypatch.setattr("unembed.encoders.loading.load_encoder", lambda *arguments, **options: fake_encoder)


@pytest.fixture
def defend(run_cli, with_encoder, tiny_checkpoint, tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("\n".join(OWN))

    def run(*arguments):
        options = ("--model", tiny_checkpoint, "--output", tmp_path / "out", "--bootstrap", 50, "--texts", own)
        return run_cli("defend", *arguments, *options)

    return run


@pytest.fixture
def source(fake_encoder, tmp_path):
    return stores.jsonl(tmp_path / "store", fake_encoder.encode(TEXTS), TEXTS)


def test_a_store_is_defended_attacked_and_searched(defend, source, tmp_path):
    before = stores.contents(tmp_path / "store")
    ended = defend(
        source, "--size", 10, "--guided", 2, "--calls", 20, "--with", "int8", "--with", "noise:1", "--with", "rotate"
    )
    assert ended.code == 0, ended.err
    assert stores.contents(tmp_path / "store") == before
    report = json.loads((tmp_path / "out" / "defences.json").read_text())
    assert [setting["chain"] for setting in report["settings"]] == ["int8", "noise:1", "rotate"]
    (leakage,) = report["settings"][0]["leakages"]
    assert [attack["name"] for attack in leakage["attacks"]] == ["naive", "denoised", "trained", "guided"]
    assert [attack["n"] for attack in leakage["attacks"]] == [10, 10, 10, 2]
    assert leakage["attacks"][0]["canaries"] == 4
    assert leakage["attacks"][0]["figures"]["token_f1"]["n"] == 10
    assert leakage["strongest"] in [attack["name"] for attack in leakage["attacks"]]
    int8, noise, rotate = report["settings"]
    assert int8["searches"][0]["measure"] == "neighbours@10"
    assert noise["utility"] < 0.8 < int8["utility"]
    assert rotate["utility"] == pytest.approx(1.0)
    assert rotate["price"] == pytest.approx(0.0)
    assert int8["bytes_per_vector"] == 20
    assert report["undefended"]["bytes_per_vector"] == 64
    assert not report["means_something"]
    assert "No conclusion" in ended.out
    assert "Encoder: fake" in report["assumptions"][0]
    assert not (tmp_path / "out" / ".unfinished").exists()


def test_the_page_is_whole_and_loads_nothing(defend, source, tmp_path):
    chains = ("--with", "int8", "--with", "rotate", "--with", "mix:0.5")
    assert defend(source, "--size", 5, "--guided", 0, *chains).code == 0
    text = (tmp_path / "out" / "defences.html").read_text()
    page = Page(text)
    assert page.loads == page.links == []
    assert not re.search(r"https?://|url\(|@import", text)
    said = " ".join(page.text)
    for heading in (
        "No conclusion",
        "Leakage against search quality",
        "Every setting",
        "What a search loses",
        "Against a key",
    ):
        assert heading in said
    assert not any(sentence in said for sentence in TEXTS)


def test_the_table_and_the_picture_of_the_docs_are_made_from_a_report(defend, source, tmp_path):
    assert defend(source, "--size", 3, "--with", "int8", "--with", "rotate", "--attackers", "naive,pairs,key").code == 0
    script = Path(__file__).parents[2] / "benchmarks" / "defences_figure.py"
    command = [sys.executable, script, tmp_path / "out" / "defences.json", "--output", tmp_path / "picture.png"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ")[0] for line in done.stdout.splitlines()]
    assert rows == ["| defence", "| ---", "| none", "| `int8`", "| `rotate`"]
    assert "| neighbours@10 |" in done.stdout
    assert "| 64 | 1.000 | +0.000 |" in done.stdout.splitlines()[-1]
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_guided_attacker_tries_what_it_is_asked_to(defend, source, tmp_path):
    chains = ("--with", "int8", "--with", "int4", "--guided-at", "int4")
    ended = defend(source, "--size", 3, "--guided", 1, "--calls", 10, *chains, "--attackers", "naive,guided")
    assert ended.code == 0, ended.err
    assert re.search(r"int8: F1 [\d.]+ by naive; neighbours@10", ended.err)
    assert re.search(r"int4: F1 [\d.]+ by naive; guided [\d.]+; neighbours@10", ended.err)
    report = json.loads((tmp_path / "out" / "defences.json").read_text())
    tried = {setting["chain"]: len(setting["leakages"][0]["attacks"]) for setting in report["settings"]}
    assert tried == {"int8": 1, "int4": 2}


def test_texts_are_shown_only_if_asked_for_and_then_to_the_owner_alone(defend, source, tmp_path):
    assert defend(source, "--size", 5, "--guided", 0, "--with", "int8", "--show-text").code == 0
    path = tmp_path / "out" / "defences.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert any(sentence.rstrip(".") in path.read_text() for sentence in TEXTS)


def test_texts_and_judged_queries_can_be_given(defend, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS))
    folder = tmp_path / "judged"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("\n".join(json.dumps({"_id": str(n), "text": t}) for n, t in enumerate(TEXTS)))
    (folder / "queries.jsonl").write_text("\n".join(json.dumps({"_id": str(n), "text": t}) for n, t in enumerate(OWN)))
    (folder / "qrels.tsv").write_text("q\td\ts\n" + "".join(f"{n}\t{n}\t1\n" for n in range(60)))
    ended = defend(
        "--public", texts, "--public", folder, "--size", 5, "--with", "int8", "--attackers", "naive", "--json"
    )
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert report["stores"] == {"texts": 60}
    assert report["collections"] == {"judged": 60}
    (search,) = report["settings"][0]["searches"]
    assert search["measure"] == "ndcg@10"
    assert search["figures"].keys() == {"ndcg@10", "recall@10"}
    assert search["change"]["n"] == 60
    assert report["undefended"]["searches"][0]["change"]["value"] == 0.0


def test_a_store_without_texts_is_attacked_on_known_sentences(defend, fake_encoder, tmp_path):
    uri = stores.npy(tmp_path / "store", fake_encoder.encode(TEXTS), TEXTS)
    ended = defend(uri, "--size", 5, "--with", "int8", "--attackers", "naive")
    assert ended.code == 0, ended.err
    report = json.loads((tmp_path / "out" / "defences.json").read_text())
    assert "built-in English sentences" in " ".join(report["assumptions"])
    assert list(report["stores"].values()) == [65]


def test_a_stopped_run_goes_on(defend, source, tmp_path, monkeypatch):
    from unembed.defending.run import _Measuring

    options = (source, "--size", 5, "--with", "int8", "--with", "int4", "--attackers", "naive")
    measured = []
    whole = _Measuring.setting

    def setting(self, text, family):
        if text == "int4" and "int4" not in measured:
            measured.append(text)
            raise KeyboardInterrupt
        measured.append(text)
        return whole(self, text, family)

    monkeypatch.setattr(_Measuring, "setting", setting)
    assert defend(*options).code == 1
    assert defend(*options).code == 0
    assert measured == ["", "int8", "int4", "int4"]


def test_a_defended_copy_is_noticed_by_its_note_and_by_its_vectors(defend, run_cli, fake_encoder, tmp_path, source):
    run_cli("defend", "apply", source, "--with", "rotate", "--output", tmp_path / "new.npy")
    ended = defend(tmp_path / "new.npy")
    assert ended.code == 2
    assert "defended already, with 'rotate'" in ended.err
    (tmp_path / "new.npy.defence.json").unlink()
    np.save(tmp_path / "new.npy", 3 * np.load(tmp_path / "new.npy") * np.linspace(0.2, 1, 60)[:, None])
    ended = defend(tmp_path / "new.npy")
    assert ended.code == 2
    assert "defended already" in ended.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing to measure"),
        (("--attackers", "nayve"), "did you mean 'naive'"),
        (("--attackers", "guided"), "naive attacker must be"),
        (("--with", "nois:1"), "did you mean 'noise'"),
        (("--with", "truncate:8,pca:12"), "from 1 to 8"),
        (("--with", "int8", "--guided-at", "int4"), "not among the defences that are measured"),
    ],
)
def test_mistakes_are_explained(arguments, says, defend, source):
    ended = defend(*([source] if arguments else ["--size", 5]), *arguments)
    assert ended.code == 2
    assert says in ended.err


def test_strengths_are_spread_evenly():
    from unembed.defences import parse_chain
    from unembed.defending.strengths import choose, families

    every = families(384)
    assert all(parse_chain(chain) for chains in every.values() for chain in chains)
    assert choose(every["int"], 2) == ["int8", "int2"]
    assert choose(every["int"], 1) == ["int4"]
    assert choose(every["rotate"], 3) == ["rotate"]
    assert all(len(chains) == 5 for name, chains in every.items() if name != "rotate")


def test_the_middle_strength_of_every_defence_comes_first():
    from unembed.defending.strengths import families, in_turn

    every = families(384)
    order = list(in_turn(every))
    assert sorted(order) == sorted((name, chain) for name, chains in every.items() for chain in chains)
    assert [name for name, _ in order[: len(every)]] == list(every)
    assert {chain for _, chain in order[: len(every)]} >= {"int4", "noise:0.4", "rotate", "rotate-cells:16"}
    assert list(in_turn({"int": ["int8", "int4"]})) == [("int", "int8"), ("int", "int4")]
