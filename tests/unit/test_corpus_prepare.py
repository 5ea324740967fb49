"""From sources to a corpus folder."""

import json
import tracemalloc

import pytest

from unembed.corpus import CorpusReport, Source, prepare
from unembed.errors import ConfigError, CorpusError

WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty"]


def sentence(number):
    return f"Sentence {number} tells of the {WORDS[number % 10]} and the {WORDS[number // 10 % 10]}."


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "input.txt"
    path.write_text("".join(f"{sentence(number)}\n" for number in range(1000)), encoding="utf-8")
    return path


def read(path):
    return path.read_text(encoding="utf-8").splitlines()


def written(folder):
    return [path.name for path in sorted(folder.iterdir())] if folder.exists() else []


def test_a_corpus_is_two_text_files_and_a_report(tmp_path, source):
    report = prepare([source], tmp_path / "corpus", validation_share=0.1, seed=3)
    train, validation = read(tmp_path / "corpus/train.txt"), read(tmp_path / "corpus/validation.txt")
    assert sorted(train + validation) == sorted(map(sentence, range(1000)))
    assert (len(train), len(validation)) == (report.train, report.validation)
    assert 60 < len(validation) < 140
    assert written(tmp_path / "corpus") == ["corpus.json", "train.txt", "validation.txt"]
    told = json.loads((tmp_path / "corpus/corpus.json").read_text())
    assert told == json.loads(json.dumps(report.to_dict()))
    assert told["inputs"] == [{"location": str(source), "weight": 1.0}]
    assert told["options"]["seed"] == 3


def test_texts_are_cleaned_and_what_is_dropped_is_counted_by_reason(tmp_path):
    path = tmp_path / "input.jsonl"
    kept = "A sentence that is long enough."
    texts = ["A\u200b  sentence that\nis long enough.", "\x00 ", "short", "x" * 501, kept.upper(), kept, "y" * 500]
    path.write_text("\n".join(json.dumps(text) for text in texts), encoding="utf-8")
    report = prepare([path], tmp_path / "corpus", validation_share=0.0)
    assert read(tmp_path / "corpus/train.txt") in ([kept, "y" * 500], ["y" * 500, kept])
    assert report.dropped == {"empty": 1, "too short": 1, "too long": 1, "duplicate": 2}
    assert report.read == report.kept + sum(report.dropped.values()) == 7


def test_fragments_are_a_few_words_in_a_row_of_their_share_of_the_texts(tmp_path, source):
    prepare([source], tmp_path / "whole", validation_share=0.2)
    prepare([source], tmp_path / "cut", validation_share=0.2, fragment_share=0.3)
    for side in ("train.txt", "validation.txt"):
        whole, cut = read(tmp_path / "whole" / side), read(tmp_path / "cut" / side)
        # In the same order, so that a piece of a text that validates never trains.
        assert all(part in text for part, text in zip(cut, whole, strict=True))
        fragments = [part for part, text in zip(cut, whole, strict=True) if part != text]
        assert 0.2 < len(fragments) / len(whole) < 0.4
        assert {len(part.split()) for part in fragments} <= set(range(2, 11))
        assert len({len(part.split()) for part in fragments}) > 5
        assert not any(part.endswith(".") for part in fragments)


def test_of_texts_that_ask_only_a_question_is_written(tmp_path):
    path = tmp_path / "input.txt"
    texts = [f"Number {number} was called. What is the sense of number {number}?" for number in range(200)]
    path.write_text("\n".join([*texts, "This text asks nothing at all."]), encoding="utf-8")
    prepare([path], tmp_path / "corpus", question_share=0.5, validation_share=0)
    written = read(tmp_path / "corpus/train.txt")
    questions = [text for text in written if text.startswith("What")]
    assert 0.35 < len(questions) / 200 < 0.65
    assert 0.3 < sum(text.endswith("?") for text in questions) / len(questions) < 0.7
    assert len(written) == 201
    assert "This text asks nothing at all." in written


def test_sentence_mode_cuts_at_sentence_ends_and_line_breaks_and_passage_mode_does_not(tmp_path):
    path = tmp_path / "input.jsonl"
    passage = "A heading without a stop\nThe first sentence is here. The second one is there.\n\n"
    path.write_text("\n".join(map(json.dumps, [passage, " "])), encoding="utf-8")
    report = prepare([path], tmp_path / "cut", mode="sentence", validation_share=0)
    assert set(read(tmp_path / "cut/train.txt")) == {
        "A heading without a stop",
        "The first sentence is here.",
        "The second one is there.",
    }
    assert (report.read, report.kept, report.dropped["empty"]) == (2, 3, 1)
    prepare([path], tmp_path / "whole", validation_share=0)
    assert read(tmp_path / "whole/train.txt") == [" ".join(passage.split())]


def test_the_same_command_gives_the_same_files(tmp_path, source):
    inputs = [source, f"{_other(tmp_path)}@2"]
    for name in ("one", "two"):
        prepare(inputs, tmp_path / name, limit=300, seed=5)
    for name in ("train.txt", "validation.txt", "corpus.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_order_of_inputs_changes_no_text_of_side(tmp_path, source):
    other = _other(tmp_path)
    prepare([source, other], tmp_path / "one")
    prepare([other, source], tmp_path / "two")
    assert set(read(tmp_path / "one/validation.txt")) == set(read(tmp_path / "two/validation.txt"))


def test_with_a_limit_the_weights_hold_among_the_texts_that_are_kept(tmp_path, source):
    # Half of the other source is dropped, which must not halve its share.
    report = prepare([f"{source}@1", f"{_other(tmp_path)}@3"], tmp_path / "corpus", limit=800)
    texts = read(tmp_path / "corpus/train.txt") + read(tmp_path / "corpus/validation.txt")
    assert len(texts) == report.kept == 800
    assert 550 < sum(text.startswith("Other") for text in texts) < 650
    assert report.inputs[1] == Source(str(tmp_path / "other.txt"), 3.0)


def _other(tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("".join(f"Other {sentence(number)}\nshort\n" for number in range(1000)), encoding="utf-8")
    return path


def test_texts_repeated_across_inputs_are_kept_once(tmp_path, source):
    report = prepare([source, source], tmp_path / "corpus")
    assert (report.kept, report.dropped["duplicate"]) == (1000, 1000)


def test_a_tiny_corpus_still_has_a_text_to_validate_on(tmp_path):
    path = tmp_path / "input.txt"
    path.write_text("\n".join(map(sentence, range(5))), encoding="utf-8")
    report = prepare([path], tmp_path / "corpus")
    assert (report.train, report.validation) == (4, 1)


def test_progress_is_told_while_reading_and_at_the_end(tmp_path, source):
    told = []
    prepare([source], tmp_path / "corpus", on_progress=lambda read, kept: told.append((read, kept)))
    assert len(told) > 5
    assert told == sorted(told)
    assert told[-1] == (1000, 1000)


def test_a_new_corpus_replaces_the_old_one(tmp_path, source):
    prepare([source], tmp_path / "corpus")
    prepare([source], tmp_path / "corpus", limit=10)
    assert len(read(tmp_path / "corpus/train.txt")) == 9


@pytest.mark.parametrize(
    ("content", "options", "remedy"),
    [
        ("", {}, "not empty"),
        ("\n\n \nshort\n", {}, "`field`"),
        ("short\ntiny\n\n", {}, "`min_characters`"),
        ("x" * 600, {}, "`max_characters`"),
    ],
)
def test_when_nothing_is_left_nothing_is_written_and_the_remedy_names_the_main_reason(
    tmp_path, content, options, remedy
):
    path = tmp_path / "input.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match="nothing is left") as caught:
        prepare([path], tmp_path / "corpus", **options)
    assert remedy in caught.value.remedy
    assert not (tmp_path / "corpus").exists()


def test_when_all_fall_to_validation_nothing_is_written(tmp_path):
    path = tmp_path / "input.txt"
    path.write_text(f"{sentence(1)}\n{sentence(2)}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="nothing is left to train on") as caught:
        prepare([path], tmp_path / "corpus", validation_share=0.999999)
    assert "`validation_share`" in caught.value.remedy
    assert written(tmp_path / "corpus") == []


def test_an_error_half_way_leaves_the_old_corpus_as_it_was(tmp_path, source):
    prepare([source], tmp_path / "corpus")
    before = (tmp_path / "corpus/train.txt").read_bytes()
    bad = tmp_path / "bad.jsonl"
    bad.write_text(f'"{sentence(5000)}"\n{{', encoding="utf-8")
    with pytest.raises(CorpusError, match="line 2 is not JSON"):
        prepare([source, bad], tmp_path / "corpus")
    assert (tmp_path / "corpus/train.txt").read_bytes() == before
    assert written(tmp_path / "corpus") == ["corpus.json", "train.txt", "validation.txt"]


def test_a_missing_second_input_is_noticed_before_the_first_is_read(tmp_path, source):
    told = []
    with pytest.raises(CorpusError, match="no file"):
        prepare([source, "missing.txt"], tmp_path / "corpus", on_progress=lambda *counts: told.append(counts))
    assert told == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"mode": "sentense"}, "did you mean 'sentence'?"),
        ({"min_characters": 0}, "from 0 to 500"),
        ({"min_characters": 30, "max_characters": 20}, "from 30 to 20"),
        ({"fragment_share": 1.5}, "1.5 is not a share"),
        ({"question_share": -1.0}, "-1 is not a share"),
        ({"validation_share": 1.0}, "1 is not a share"),
        ({"validation_share": -0.1}, "-0.1 is not a share"),
        ({"validation_share": float("nan")}, "nan is not a share"),
        ({"limit": 0}, "limit of 0"),
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path, source, options, problem):
    with pytest.raises(ConfigError) as caught:
        prepare([source], tmp_path / "corpus", **options)
    assert problem in caught.value.problem
    assert caught.value.remedy


def test_no_input_or_an_output_that_is_a_file_is_refused(tmp_path, source):
    with pytest.raises(CorpusError, match="no input"):
        prepare([], tmp_path / "corpus")
    with pytest.raises(CorpusError, match="is a file"):
        prepare([source], source)


def test_an_input_is_never_overwritten_by_the_output(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(sentence(1), encoding="utf-8")
    for given in (path, tmp_path):
        with pytest.raises(CorpusError, match="overwrite its own input"):
            prepare([given], tmp_path)
    assert read(path) == [sentence(1)]


def test_memory_stays_flat_but_for_the_fingerprints(tmp_path):
    path = tmp_path / "input.txt"
    path.write_text("".join(f"{number} {'word ' * 90}\n" for number in range(8000)), encoding="utf-8")
    tracemalloc.start()
    try:
        report = prepare([path], tmp_path / "corpus")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(report, CorpusReport)
    # The texts are 3.6 MB; the fingerprints of 8,000 of them below one.
    assert path.stat().st_size > 3_500_000
    assert peak < 1_500_000
