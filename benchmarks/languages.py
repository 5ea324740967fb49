"""Languages: how much an inverter reads back in each, and which tokenizer suits them. The tables of docs/languages.md.

    python benchmarks/languages.py split multilingual.tsv.gz --output work/languages
    python benchmarks/languages.py tokenizers work/languages --english english.txt
    python benchmarks/languages.py evaluate work/languages --english c4_sentences.txt --model multilingual

``split`` reads lines of ``language<TAB>text`` and keeps 200 lines of each language that Universal Sentence Encoder
multilingual v3 knows apart (``heldout-XX.txt``); the other lines of these languages are for training (``other.txt``).
``evaluate`` inverts, blind, the held-out lines that fit the canvas; of a longer line its first sentence, if that fits.
"""

import argparse
import gzip
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from measure import Result, finish
from unembed.auditing.language import language_of, name_languages
from unembed.auditing.words import WordReader, is_worth_naming, words_without_meaning
from unembed.canvas import count_pieces, reduce_vocabulary, respelled_share
from unembed.config import DecodingConfig
from unembed.encoders import load_encoder, load_tokenizer
from unembed.evaluation import Bootstrap, Figure, Subject
from unembed.evaluation.bench import Bench
from unembed.evaluation.examiner import Examiner
from unembed.evaluation.texts import choose_references
from unembed.inverter import Inverter
from unembed.measures import is_grammar
from unembed.scripts import UNSPACED, WORD

KNOWN = ("ar", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "tr", "zh")
"""Languages of Universal Sentence Encoder multilingual v3 that the corpus has, beside English."""
HELD_OUT = 200
TOKENIZERS = ("use-multilingual-v3", "multilingual-e5-small")
SIZES = (32_000, 48_000)
_QUICK_SIZE = 12_000
_SHORTEST = 8
# Held-out lines have so many characters, and one line in so many is taken.
_LEAST, _MOST, _ONE_IN = 20, 200, 8
_COUNTED = 60_000
_SENTENCE_END = re.compile(r"(?<=[.!?؟])\s+|(?<=[。！？])")
_TOP = 10
_WITHOUT_VECTOR = 40
_COLUMNS = {
    "token_f1": "token F1",
    "cosine": "cosine",
    "exact_match": "exact match",
    "length": "length within one token",
    "words": "words named",
    "same": "in its language",
    "without": "token F1 without the vector",
}


def split(lines: Iterable[str], held_out: int = HELD_OUT) -> tuple[dict[str, list[str]], list[str]]:
    """Divide lines of ``language<TAB>text`` by the hash of their text: held-out texts by language, and all others."""
    held: dict[str, list[str]] = defaultdict(list)
    others: list[str] = []
    seen: set[str] = set()
    for line in lines:
        language, _, text = line.rstrip("\n").partition("\t")
        key = text.casefold().strip()
        if language not in KNOWN or key in seen or len(text) < _SHORTEST:
            continue
        seen.add(key)
        chosen = int(sha256(text.encode()).hexdigest()[:8], 16) % _ONE_IN == 0
        if chosen and len(held[language]) < held_out and _LEAST <= len(text) <= _MOST:
            held[language].append(text)
        else:
            others.append(text)
    return {language: held[language] for language in KNOWN if held[language]}, others


def run_split(options: argparse.Namespace) -> None:
    """Write the held-out lines of each language, and the others."""
    with gzip.open(options.corpus, "rt", encoding="utf-8") as lines:
        held, others = split(lines)
    options.output.mkdir(parents=True, exist_ok=True)
    for language, texts in held.items():
        _write(options.output / f"heldout-{language}.txt", texts)
        print(language, len(texts))
    _write(options.output / "other.txt", others)
    print("for training", len(others))


def read_held_out(folder: Path) -> dict[str, list[str]]:
    """Read what ``split`` kept apart, by language."""
    held = {path.stem.removeprefix("heldout-"): _read(path) for path in sorted(folder.glob("heldout-*.txt"))}
    if not held:
        sys.exit(f"{folder} has no heldout-XX.txt. Run: python benchmarks/languages.py split ... --output {folder}")
    return held


def run_tokenizers(options: argparse.Namespace) -> None:
    """Compare tokenizers for the canvas, reduced to what the training texts use."""
    held = read_held_out(options.folder)
    draw = random.Random(0)
    others, english = _read(options.folder / "other.txt"), _read(options.english)
    counted = [text for part in (others, english) for text in draw.sample(part, min(_COUNTED, len(part)))]
    columns: dict[str, list[str]] = {}
    for name in TOKENIZERS:
        whole = load_tokenizer(name)
        counts = count_pieces(counted, whole)
        for size in (_QUICK_SIZE,) if options.quick else SIZES:
            tokenizer = reduce_vocabulary(whole, counts, size)
            respelled = respelled_share(whole, tokenizer, counts)
            columns[f"{name}, {size:,} pieces, {respelled:.1%} respelled"] = [
                _describe_cut(tokenizer, texts, options.canvas) for texts in held.values()
            ]
    names = [f"{name} (n = {len(texts)})" for (code, texts) in held.items() for name in name_languages([code])]
    finish(
        Result(
            title="Tokenizers for the canvas",
            compared="Held-out texts, as two tokenizers cut them when they are reduced to their commonest pieces: "
            f"tokens per text; share of texts of more than {options.canvas} tokens; share that comes back exactly.",
            columns=["language", *columns],
            rows=[list(row) for row in zip(names, *columns.values(), strict=True)],
            figures=[],
            repetitions=1,
            sizes={"texts that the pieces were counted in": f"{len(counted):,}"},
        ),
        options,
    )


def _describe_cut(tokenizer: Tokenizer, texts: Sequence[str], canvas: int) -> str:
    encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    lengths = np.array([len(encoding.ids) for encoding in encodings])
    back = tokenizer.decode_batch([encoding.ids for encoding in encodings])
    same = np.mean([one == other for one, other in zip(back, texts, strict=True)])
    return f"{lengths.mean():.1f}; {np.mean(lengths > canvas):.0%}; {same:.0%}"


@dataclass(frozen=True)
class Measured:
    """What an inverter made of the texts of one language."""

    language: str
    inverter: str
    figures: Mapping[str, Figure]
    token_f1: np.ndarray
    texts: Sequence[str]
    recovered: Sequence[str]

    def row(self) -> list[str]:
        """Return the row of the table."""
        n = len(self.texts)
        return [self.language, self.inverter, f"{n}", *(self._show(name) for name in _COLUMNS)]

    def _show(self, name: str) -> str:
        """Write a figure; its n where that is not the row's."""
        if name not in self.figures:
            return ""
        figure = self.figures[name]
        shown = f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"
        return shown if figure.n == len(self.texts) else f"{shown} (n = {figure.n})"

    def examples(self, count: int) -> Iterator[str]:
        """Yield the texts in the middle of the order by token F1, with what was recovered."""
        order = np.argsort(-self.token_f1, kind="stable")
        first = max(0, (len(order) - count) // 2)
        for row in order[first : first + count].tolist():
            yield f"| {self.language} | {self.token_f1[row]:.2f} | {self.texts[row]} | {self.recovered[row]} |"


def word_recall(text: str, named: Sequence[str], common: frozenset[str]) -> float | None:
    """Return the share of a text's words that were named; None if it has none that says something.

    Case does not count. Where words have no spaces between them (Chinese, Japanese), the share is of characters: those
    that a named word of the text covers.
    """
    words = {word.casefold() for word in WORD.findall(text) if is_worth_naming(word, common)}
    characters = {each for run in UNSPACED.findall(text) for each in run if not is_grammar(each)}
    if not words | characters:
        return None
    covered = {character for name in named if UNSPACED.fullmatch(name) and name in text for character in name}
    hits = len(words & {name.casefold() for name in named}) + len(characters & covered)
    return hits / len(words | characters)


def shorten(text: str, inverter: Inverter) -> str:
    """Return a text that fits the canvas as it is, of a longer one the first sentence."""
    fits = len(inverter.tokenizer.encode(text, add_special_tokens=False).ids) <= inverter.info.model.canvas_length
    return text if fits else _SENTENCE_END.split(text, maxsplit=1)[0]


def measure(language: str, subject: Subject, texts: Sequence[str], bootstrap: Bootstrap) -> Measured:
    """Invert the texts that fit the canvas, blind and with the length guessed, and compare."""
    inverter = subject.inverter
    fitting = [shorten(text, inverter) for text in texts]

    def bench_for(limit: int) -> Bench:
        canvas = inverter.info.model.canvas_length
        references = choose_references(
            fitting, inverter.tokenizer, protocol="natural", canvas_length=canvas, limit=limit, name=language
        )
        examiner = Examiner(references, inverter.tokenizer, subject.encoder, bootstrap)
        return Bench(subject, examiner, guided_limit=1, label=language, on_progress=lambda label, more, total: None)

    bench = bench_for(len(texts))
    examiner, references = bench.examiner, bench.examiner.references
    blind = bench.outcome(DecodingConfig())
    # Without a vector no token can be ruled out: this takes four times as long.
    without = bench_for(_WITHOUT_VECTOR).outcome(DecodingConfig(), unconditional=True)
    lengths = zip(blind.recovered.ids, references.ids, strict=True)
    near = np.array([abs(len(ours) - len(theirs)) <= 1 for ours, theirs in lengths], dtype=np.float64)
    named = WordReader(inverter, top=_TOP).read(examiner.vectors)
    common = words_without_meaning(inverter.info.languages)
    recalls = [word_recall(text, named.names_of(row), common) for row, text in enumerate(references.texts)]
    figures = {name: blind.scores.figures[name] for name in ("token_f1", "cosine", "exact_match")}
    figures |= {
        "length": bootstrap.mean(near),
        "words": bootstrap.mean(np.array([recall for recall in recalls if recall is not None])),
        "without": without.scores.figures["token_f1"],
    }
    told = zip(map(language_of, references.texts), map(language_of, blind.scores.texts), strict=True)
    same = [float(ours == theirs) for theirs, ours in told if theirs and ours]
    if same:
        figures["same"] = bootstrap.mean(np.array(same))
    return Measured(
        language, subject.name, figures, blind.scores.per_text["token_f1"], references.texts, blind.scores.texts
    )


def run_evaluate(options: argparse.Namespace) -> None:
    """Measure every language, and print the table."""
    held = read_held_out(options.folder)
    if options.english:
        held["en"] = _read(options.english)[:HELD_OUT]
    if options.only:
        held = {language: texts for language, texts in held.items() if language in options.only}
    if options.quick:
        held = {language: texts[:3] for language, texts in held.items()}
    bootstrap = Bootstrap(20 if options.quick else 1000)
    subject = _load(options.model)
    measured = []
    for language, texts in held.items():
        measured.append(measure(name_languages([language])[0], subject, texts, bootstrap))
        print(f"  {' | '.join(measured[-1].row())}", file=sys.stderr, flush=True)
    measured.sort(key=lambda each: -each.figures["token_f1"].value)
    for name in options.beside if "en" in held else []:
        measured.append(measure("English", _load(name), held["en"], bootstrap))
    if options.show:
        print("| language | token F1 | original | recovered |\n|---|---|---|---|")
        print("\n".join(line for each in measured for line in each.examples(options.show)), "\n")
    finish(
        Result(
            title="Languages",
            compared="Held-out texts, read back from their vectors alone; the length is guessed.",
            columns=["language", "inverter", "n", *_COLUMNS.values()],
            rows=[each.row() for each in measured],
            figures=[],
            repetitions=1,
            sizes={"languages": len(held)},
            times={f"{each.language}, {each.inverter}": each.token_f1.round(4).tolist() for each in measured},
            notes=[
                "Intervals: 95 %, bootstrap over texts. The numbers under `times` are the token F1 of each text.",
                f"Words named: share of a text's content words among the {_TOP} likeliest of `unembed words`; of "
                "Chinese and Japanese, of characters.",
                "In its language: share of the recovered texts that are in the language of the original, where both "
                "languages can be told.",
                "Cosine: of the given vector with that of the recovered text, by the inverter's own encoder. Cosines "
                "of different encoders do not compare.",
            ],
        ),
        options,
    )


def _load(name: str) -> Subject:
    inverter = Inverter.from_pretrained(name, device="cpu")
    return Subject(Path(name).name, inverter, load_encoder(inverter.info.encoder.name, device="cpu"))


def _read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def _write(path: Path, texts: Sequence[str]) -> None:
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    dividing = commands.add_parser("split", help="keep some lines of each language apart")
    dividing.add_argument("corpus", type=Path, help="gzip of lines: language, tab, text")
    dividing.add_argument("--output", type=Path, required=True, help="folder of the files")
    dividing.set_defaults(run=run_split)
    cutting = commands.add_parser("tokenizers", help="compare tokenizers on the held-out lines")
    cutting.add_argument("folder", type=Path, help="what split wrote")
    cutting.add_argument("--english", type=Path, required=True, help="English training texts, one per line")
    cutting.add_argument("--canvas", type=int, default=32, help="tokens (default: %(default)s)")
    cutting.set_defaults(run=run_tokenizers)
    measuring = commands.add_parser("evaluate", help="read the held-out lines back")
    measuring.add_argument("folder", type=Path, help="what split wrote")
    measuring.add_argument("--english", type=Path, help=f"English texts that are new; the first {HELD_OUT} are taken")
    measuring.add_argument("--model", default="multilingual", help="the inverter (default: %(default)s)")
    measuring.add_argument("--beside", nargs="*", default=[], help="inverters for English, for comparison")
    measuring.add_argument("--only", nargs="*", help="codes of languages")
    measuring.add_argument("--show", type=int, default=0, help="print so many texts of each language, of middling F1")
    measuring.set_defaults(run=run_evaluate)
    for command in (cutting, measuring):
        command.add_argument("--quick", action="store_true", help="shows that the script runs, measures nothing")
        command.add_argument("--json", type=Path, help="also write the result to this file")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
