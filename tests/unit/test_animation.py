"""Decoding in a terminal, on a console that only writes down what it is given."""

import io
import re

import pytest
import torch
from rich.console import Console

from unembed.canvas import CanvasVocabulary
from unembed.cli.animation import MASK, SECONDS, SHADES, Animation, Painter, shade
from unembed.decoding import Step


@pytest.fixture
def vocabulary(tiny_tokenizer):
    return CanvasVocabulary.of(tiny_tokenizer)


@pytest.fixture
def painter(tiny_tokenizer, vocabulary):
    return Painter(tiny_tokenizer, vocabulary)


@pytest.fixture
def ids(tiny_tokenizer, vocabulary):
    """Token ids of a text in which ``_`` is a mask."""

    def ids(text):
        parts = [
            [vocabulary.mask] if word == "_" else tiny_tokenizer.encode(word, add_special_tokens=False).ids
            for word in text.split()
        ]
        return [token for part in parts for token in part]

    return ids


@pytest.fixture
def make_step(vocabulary):
    def make(*canvases, confidence=0.5, changed=(), passes=1, score=-1.0, final=False, texts_embedded=0):
        canvas = torch.tensor(canvases)
        masked = canvas == vocabulary.mask
        return Step(
            rows=torch.zeros(len(canvas), dtype=torch.long),
            candidate=torch.arange(len(canvas)),
            canvas=canvas,
            changed=torch.zeros_like(masked).index_fill(1, torch.tensor(changed, dtype=torch.long), True),
            confidence=torch.where(masked, 0.0, confidence),
            mask_rate=masked.float().mean(1),
            passes=torch.full((len(canvas),), passes),
            score=torch.full((len(canvas),), score),
            final=torch.full((len(canvas),), final),
            texts_embedded=torch.full((len(canvas),), texts_embedded),
        )

    return make


def terminal(**options):
    return Console(
        file=io.StringIO(), force_terminal=True, width=60, color_system="256", _environ={"TERM": "xterm"}, **options
    )


def styles(text):
    """Return the words of a text with the style of each."""
    return {
        text.plain[span.start : span.end]: str(span.style) for span in text.spans if text.plain[span.start : span.end]
    }


def plain(written):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written)


def test_tokens_are_coloured_from_the_least_to_the_most_sure():
    assert [shade(sure) for sure in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)] == [
        SHADES[0],
        SHADES[0],
        SHADES[1],
        SHADES[2],
        SHADES[3],
        SHADES[4],
        SHADES[4],
    ]


def test_a_canvas_reads_as_its_text_does_with_a_block_for_each_mask(painter, ids):
    canvas = ids("the cat _ _ the mat .")
    painted = painter.canvas(canvas, [0.95, 0.5, 0.0, 0.0, 0.1, 0.1, 0.99])
    assert painted.plain == f"the cat {MASK} {MASK} the mat."
    assert styles(painted) | {"the": SHADES[0], "cat": SHADES[2], "mat": SHADES[0], ".": SHADES[4]} == styles(painted)


def test_what_a_pass_changed_stands_out(painter, ids):
    painted = painter.canvas(ids("the cat sleeps"), [0.9, 0.9, 0.9], [False, True, False])
    assert [word for word, style in styles(painted).items() if "reverse" in style] == ["cat"]


def test_the_end_of_a_word_without_its_beginning_is_shown_as_a_token(painter, ids, tiny_tokenizer):
    ending = tiny_tokenizer.token_to_id("##s")
    assert painter.canvas([*ids("the _"), ending], [0.9, 0.0, 0.2]).plain == f"the {MASK} ##s"
    assert painter.canvas([tiny_tokenizer.token_to_id("x"), ending], [0.9, 0.2]).plain == "xs"


def test_the_filling_of_a_fixed_canvas_is_small(painter, ids, vocabulary):
    canvas = [*ids("the cat"), vocabulary.eos, vocabulary.pad]
    assert painter.canvas(canvas, [0.9] * 4).plain == "the cat · ·"
    assert painter.tokens([*canvas, vocabulary.mask]) == ["the", "cat", "[EOS]", "[PAD]", None]


def test_words_of_any_tokenizer_have_their_own_colours(any_tokenizer):
    painter = Painter(any_tokenizer, CanvasVocabulary.of(any_tokenizer))
    canvas = any_tokenizer.encode("the cat", add_special_tokens=False).ids
    assert len(canvas) == 2
    painted = painter.canvas(canvas, [0.1, 0.9])
    assert painted.plain == "the cat"
    assert styles(painted) == {"the": SHADES[0], "cat": SHADES[4]}


def test_bytes_of_a_character_do_not_shift_the_colours_behind_it(build_tokenizer):
    bytewise = build_tokenizer("BPE")
    painter = Painter(bytewise, CanvasVocabulary.of(bytewise))
    canvas = bytewise.encode("the é cat").ids
    painted = painter.canvas(canvas, [0.1] * (len(canvas) - 1) + [0.9])
    assert painted.plain == "the é cat"
    assert styles(painted) | {"the": SHADES[0], "cat": SHADES[4]} == styles(painted)


def test_an_empty_canvas_is_an_empty_text(painter):
    assert painter.canvas([], []).plain == ""


def test_a_text_with_brackets_is_no_markup(painter, ids):
    assert painter.canvas(ids("[ red ] the cat"), [0.5] * 5).plain == "[ red ] the cat"


def test_a_pass_tells_its_number_and_its_mask_rate(painter, make_step, ids):
    (label, told), (_, canvas) = painter.step(make_step(ids("the _ _ _"), passes=3))
    assert label == "pass 3"
    assert told.plain.startswith("75% masked")
    assert canvas.plain == f"the {MASK} {MASK} {MASK}"


def test_a_guided_round_tells_its_cosine(painter, make_step, ids):
    told = painter.step(make_step(ids("the cat"), score=0.912, texts_embedded=1234))[0][1].plain
    assert "cosine 0.912 after 1,234 texts embedded" in told


def test_hypotheses_that_are_decoded_together_are_shown_together(painter, make_step, ids):
    rows = painter.step(make_step(ids("the cat"), ids("a dog")))
    assert [text.plain for _, text in rows[1:]] == ["the cat", "a dog"]


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The pauses between passes, which no test waits for."""
    pauses = []
    monkeypatch.setattr("unembed.cli.animation.time.sleep", pauses.append)
    return pauses


def play(painter, heading, steps, ending, console):
    with Animation(console, painter, heading) as animation:
        for step in steps:
            animation.show(step)
        if ending:
            animation.end(ending)
    return console.file.getvalue()


def test_passes_replace_one_another_and_the_result_stays(painter, make_step, ids):
    steps = [make_step(ids("the _ _"), passes=1), make_step(ids("the cat sleeps"), passes=2)]
    ending = [("recovered", painter.canvas(ids("the cat sleeps"), [0.9] * 3))]
    written = play(painter, [("original", painter.canvas(ids("a cat"), [1, 1]))], steps, ending, terminal())
    said = plain(written)
    assert said.index("67% masked") < said.index("0% masked") < said.index("recovered")
    assert written.count("\x1b[1A") >= 4, "a frame is drawn over the one before it"
    last = said[said.rindex("recovered") :].rstrip()
    assert last.split() == ["recovered", "the", "cat", "sleeps"]
    assert written.endswith("\x1b[?25h"), "the cursor is visible again"


def test_a_frame_as_it_looks(painter, make_step, ids):
    written = play(painter, [], [make_step(ids("the cat _ on the _ ."), changed=[0])], None, terminal())
    first = plain(written).split("\r")[0].splitlines()
    assert [line.rstrip() for line in first][:2] == [
        "pass 1     29% masked   less sure ■■■■■ more sure",
        f"           the cat {MASK} on the {MASK} .",
    ]


def test_a_long_text_wraps_within_its_column(painter, make_step, ids):
    written = play(painter, [], [make_step(ids("the cat sleeps on the mat " * 4))], None, terminal())
    lines = plain(written).split("\r")[0].splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 60 and line.startswith(" " * 11) for line in lines[1:])


def test_without_colours_none_are_written(painter, make_step, ids):
    written = play(painter, [], [make_step(ids("the _ cat"), changed=[0])], None, terminal(no_color=True))
    assert MASK in written
    assert not re.search(r"\x1b\[[0-9;]*(3[0-8]|9[0-7])[;m]", written)


@pytest.mark.parametrize("passes", [1, 8, 200])
def test_any_number_of_passes_takes_no_longer_than_the_time_given(painter, make_step, ids, waits, passes):
    play(painter, [], [make_step(ids("the _"))] * passes, None, terminal())
    assert len(waits) == passes
    assert 0 < sum(waits) <= SECONDS
    assert max(waits) < 0.25


def test_an_interrupted_animation_leaves_the_terminal_in_order(painter, make_step, ids, monkeypatch):
    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("unembed.cli.animation.time.sleep", interrupt)
    console = terminal()
    with pytest.raises(KeyboardInterrupt):
        play(painter, [], [make_step(ids("the _"))], None, console)
    assert console.file.getvalue().endswith("\x1b[?25h")
