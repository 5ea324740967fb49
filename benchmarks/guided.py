"""Guided search: how much of a text it finds, by encoder calls and by seconds, for texts of several lengths.

The vectors are those of texts that are read from files. The search guesses the length of each text. A figure at a
budget is that of the best text which the search had after so many encoder calls; a search that ended earlier keeps its
result.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from measure import Result, finish, make_parser
from unembed.config import DecodingConfig, parse
from unembed.inverter import Inverter
from unembed.measures import BY_NAME, Forms, compare

BUDGETS = (100, 200, 500, 1000, 2000, 5000)
CLASSES = ("4-8", "9-12", "13-18", "19-24", "25-32")
MEASURED = ("exact_match", "token_f1", "bleu", "cosine")
_TOGETHER = 8
_OURS = ("The cat is sleeping on the sofa.", "She bought a new car last week.")


@dataclass(frozen=True)
class State:
    """The best text of a search at some moment."""

    calls: int
    seconds: float
    """Of computing since the search began, per text."""
    ids: list[int]
    cosine: float


@dataclass
class Searched:
    """A text, and how the search for it went."""

    text: str
    ids: list[int]
    states: list[State] = field(default_factory=list)

    def best_within(self, calls: int) -> State:
        """Return the last state within a budget; before the first one, the first."""
        return next((state for state in reversed(self.states) if state.calls <= calls), self.states[0])


def choose_texts(
    inverter: Inverter, lines: Sequence[str], lengths: tuple[int, int], count: int, *, cut: bool
) -> list[Searched]:
    """Return the first different texts whose number of tokens lies in a range; with ``cut``, longer ones are cut."""
    chosen: dict[str, Searched] = {}
    for line in lines:
        ids = inverter.tokenizer.encode(line.strip(), add_special_tokens=False).ids
        ids = ids[: lengths[1]] if cut else ids
        text = inverter.tokenizer.decode(ids)
        # A text is what its tokens say, and must read as the same tokens again.
        same = inverter.tokenizer.encode(text, add_special_tokens=False).ids == ids
        if same and lengths[0] <= len(ids) <= lengths[1] and not set(ids) & set(inverter.info.special_ids):
            chosen.setdefault(text, Searched(text, ids))
        if len(chosen) == count:
            break
    return list(chosen.values())


def search(inverter: Inverter, encoder: Any, texts: list[Searched], options: DecodingConfig) -> None:
    """Search for texts, a few together, and note every state."""
    for start in range(0, len(texts), _TOGETHER):
        part = texts[start : start + _TOGETHER]
        vectors = encoder.encode([each.text for each in part])
        begun = time.perf_counter()
        for steps in inverter.search_rounds(vectors, options, encoder=encoder):
            seconds = (time.perf_counter() - begun) / len(part)
            for step in steps:
                if step.texts_embedded.sum():
                    state = State(int(step.texts_embedded), seconds, step.canvas[0].tolist(), float(step.score))
                    part[int(step.rows[0])].states.append(state)
        print(f"  {start + len(part)}/{len(texts)} {seconds:.1f} s a text", file=sys.stderr, flush=True)


def measure(inverter: Inverter, texts: list[Searched], calls: int) -> dict[str, float]:
    """Return the figures at a budget."""
    states = [each.best_within(calls) for each in texts]
    recovered = Forms([state.ids for state in states], [inverter.tokenizer.decode(state.ids) for state in states])
    compared = compare(recovered, Forms([each.ids for each in texts], [each.text for each in texts]))
    figures = {}
    for name in MEASURED[:-1]:
        of_sums = BY_NAME[name].of_sums
        values = compared[name]
        figures[name] = float(of_sums(values.sum(0)[None])[0] if of_sums else values.mean())
    return {
        **figures,
        "cosine": float(np.mean([state.cosine for state in states])),
        "calls": float(np.mean([state.calls for state in states])),
        "seconds": float(np.mean([state.seconds for state in states])),
    }


def main() -> None:
    """Search for the texts of each class of lengths."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("--model", default="default", help="the inverter (default: %(default)s)")
    parser.add_argument("--texts", type=Path, help="a file with a text per line")
    parser.add_argument("--lines", default="0-300", help="which of its lines, from-to (default: %(default)s)")
    parser.add_argument("--tokens", nargs="+", default=CLASSES, help="classes of lengths (default: %(default)s)")
    parser.add_argument("--count", type=int, default=40, help="texts in each class (default: %(default)s)")
    parser.add_argument("--calls", type=int, default=5000, help="encoder calls per text (default: %(default)s)")
    parser.add_argument("--cut", action="store_true", help="cut longer texts to the class's largest length")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="other settings of the search")
    parser.add_argument("--show", action="store_true", help="print every text with what was found")
    options = parser.parse_args()
    if options.quick:
        options.tokens, options.count, options.calls = ["4-12"], 2, 60
    inverter = Inverter.from_pretrained(options.model, device="cpu")
    encoder = inverter.load_encoder(device="cpu")
    first, last = _range(options.lines)
    lines = options.texts.read_text(encoding="utf-8").splitlines()[first:last] if options.texts else _OURS
    changes = dict(pair.split("=", 1) for pair in options.set)
    search_options = parse(
        DecodingConfig, {"strategy": "guided", "guided": {"calls": options.calls, **changes}}, "the options"
    )
    rows, sizes = [], {}
    for tokens in options.tokens:
        texts = choose_texts(inverter, lines, _range(tokens), options.count, cut=options.cut)
        if not texts:
            continue
        search(inverter, encoder, texts, search_options)
        if options.show:
            _show(inverter, texts)
        sizes[f"{tokens} tokens"] = f"n = {len(texts)}"
        for budget in [each for each in BUDGETS if each < options.calls] + [options.calls]:
            values = measure(inverter, texts, budget)
            shown = [BY_NAME[name].show_plainly(values[name]) for name in MEASURED]
            rows.append([tokens, f"{budget:,}", *shown, f"{values['calls']:,.0f}", f"{values['seconds']:.1f}"])
    finish(
        Result(
            title="Guided search",
            compared="The text that the search found with that of the vector, after so many encoder calls.",
            columns=["tokens", "encoder calls", *(BY_NAME[name].label for name in MEASURED), "calls used", "seconds"],
            rows=rows,
            figures=[],
            repetitions=1,
            sizes={"lines": options.lines, "texts": options.texts.name if options.texts else "our own", **sizes},
            notes=["Calls used and seconds are means over the texts, until the state that is measured."],
        ),
        options,
    )


def _range(given: str) -> tuple[int, int]:
    first, _, last = given.partition("-")
    return int(first), int(last)


def _show(inverter: Inverter, texts: list[Searched]) -> None:
    for each in texts:
        last = each.states[-1]
        sign = "=" if last.ids == each.ids else " "
        print(f"{sign} {last.cosine:.4f} {last.calls:5d} {each.text}\n{'':15s}{inverter.tokenizer.decode(last.ids)}")


if __name__ == "__main__":
    main()
