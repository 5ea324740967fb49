"""What a search loses: judged collections, measures by hand, neighbours."""

import json

import numpy as np
import pytest

from unembed.corpus.judged import is_judged_folder, read_judged
from unembed.defences import Chain, parse_chain
from unembed.defending.utility import JudgedVectors, ndcg, recall, search_judged, search_neighbours
from unembed.errors import CorpusError
from unembed.measures.vectors import normalise


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "animals"
    path.mkdir()
    documents = [("d1", "Cats", "sleep a lot"), ("d2", "Dogs", "run"), ("d3", "", "x" * 2000)]
    lines = [json.dumps({"_id": i, "title": title, "text": text}) for i, title, text in documents]
    (path / "corpus.jsonl").write_text("\n".join(lines))
    queries = [json.dumps({"_id": f"q{n}", "text": f"question {n}"}) for n in range(3)]
    (path / "queries.jsonl").write_text("\n".join(queries))
    (path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq0\td1\t1\nq0\td2\t2\nq1\td3\t1\nq2\td1\t0\nq1\tgone\t1\n"
    )
    return path


def test_a_folder_in_beir_format_is_read(folder):
    judged = read_judged(str(folder))
    assert judged.name == "animals"
    assert judged.documents["d1"] == "Cats sleep a lot"
    assert len(judged.documents["d3"]) == 800
    assert judged.relevant == {"q0": {"d1": 1.0, "d2": 2.0}, "q1": {"d3": 1.0}}
    assert list(judged.queries) == ["q0", "q1"]
    assert read_judged(f"{folder}#text").documents["d1"] == "sleep a lot"
    assert is_judged_folder(str(folder))
    assert is_judged_folder(f"{folder}#text")
    assert not is_judged_folder(str(folder.parent))


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("corpus.jsonl", None, "no corpus.jsonl"),
        ("corpus.jsonl", "[]", "line 1"),
        ("queries.jsonl", '{"_id": 1}', "line 1"),
        ("qrels.tsv", "header\nq0 d1 1\n", "line 2"),
        ("qrels.tsv", "header\n", "no query"),
        ("qrels.tsv", None, "no qrels.tsv"),
    ],
)
def test_a_damaged_folder_is_refused(file, content, says, folder):
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(CorpusError, match=says):
        read_judged(str(folder))


def test_measures_are_those_of_trec_eval():
    assert ndcg([3, 1, 2], {3: 1.0}) == 1.0
    assert ndcg([1, 3, 2], {3: 1.0}) == pytest.approx(1 / np.log2(3))
    assert ndcg([5, 6], {5: 1.0, 6: 3.0}) == pytest.approx((1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3)))
    assert ndcg([1], {2: 1.0}) == 0.0
    assert recall([1, 2, 3], {2: 1.0, 9: 1.0}) == 0.5


@pytest.fixture(scope="module")
def vectors():
    return normalise(np.random.default_rng(0).normal(size=(300, 32)).astype("f4"))


def test_a_search_is_as_good_as_before_after_a_rotation_and_worse_after_noise(vectors):
    judged = JudgedVectors("x", vectors, vectors[:50] + 0.05, [{row: 1.0} for row in range(50)])
    scores = {}
    for text in ("rotate", "noise:0.2", "noise:5"):
        found = search_judged(judged, Chain.fit(parse_chain(text), vectors, seed=0))
        assert found.values.keys() == {"ndcg@10", "recall@10"}
        assert found.milliseconds > 0
        scores[text] = found.values["ndcg@10"].mean()
    plain = search_judged(judged, Chain((), 32)).values["ndcg@10"].mean()
    assert scores["rotate"] == pytest.approx(plain)
    assert scores["noise:5"] < 0.5 < scores["noise:0.2"] <= plain


def test_neighbours_stay_under_a_rotation_and_change_with_noise(vectors):
    asked = np.arange(0, 300, 3)
    share = {
        text: search_neighbours(vectors, asked, Chain.fit(parse_chain(text), vectors, seed=0))
        .values["neighbours@10"]
        .mean()
        for text in ("rotate", "int8", "noise:0.3", "noise:3")
    }
    assert share["rotate"] == 1.0
    assert share["int8"] > 0.9 > share["noise:0.3"] > share["noise:3"]


def test_cells_are_searched_with_several_forms_of_the_query(vectors):
    grouped = normalise(vectors + np.repeat(2 * vectors[:6], 50, axis=0))
    found = search_neighbours(grouped, np.arange(50), Chain.fit(parse_chain("rotate-cells:6"), grouped, seed=0))
    assert found.forms == 4
    assert found.values["neighbours@10"].mean() > 0.8
