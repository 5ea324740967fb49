"""The whole way from sources to ``train.txt`` and ``validation.txt``. Knows nothing of tokens or terminals."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from unembed.corpus.cleaning import clean, cut_fragment, find_question, split_sentences
from unembed.corpus.deduplicate import Deduplicator
from unembed.corpus.mix import Source, mix, parse_source
from unembed.corpus.readers import read_texts
from unembed.corpus.report import CorpusOptions, CorpusReport
from unembed.corpus.split import position, split
from unembed.errors import CorpusError
from unembed.files import atomic_path, write_json

TRAIN, VALIDATION, REPORT = "train.txt", "validation.txt", "corpus.json"
_PROGRESS_EVERY = 100

_REMEDIES = {
    "empty": "Most are empty: choose the field that holds the text with `field`.",
    "too short": "Most are too short: lower `min_characters`.",
    "too long": "Most are too long: raise `max_characters`, or cut them with `mode=sentence`.",
}


@dataclasses.dataclass
class _Tally:
    """The counts so far, and the texts seen so far; all sources share one tally."""

    on_progress: Callable[[int, int], None]
    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys([*_REMEDIES, "duplicate"], 0))
    seen: Deduplicator = dataclasses.field(default_factory=Deduplicator)


def prepare(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    mode: str = "passage",
    min_characters: int = 20,
    max_characters: int = 500,
    fragment_share: float = 0.0,
    question_share: float = 0.0,
    validation_share: float = 0.01,
    limit: int | None = None,
    seed: int = 0,
    field: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> CorpusReport:
    """Read, clean, de-duplicate, mix and split texts into a folder, in one pass.

    Args:
        inputs: sources, as ``read_texts`` takes them, each optionally with ``@weight`` (see ``unembed.corpus.mix``).
            The weights hold among the texts that are kept.
        output: the folder for ``train.txt`` and ``validation.txt`` (one text a line) and ``corpus.json`` (the report).
        mode: ``passage`` keeps each text whole; ``sentence`` cuts it at sentence ends and line breaks.
        min_characters: shorter texts are dropped.
        max_characters: longer texts are dropped.
        fragment_share: share of the kept texts that is shortened to a few words in a row, at random. Queries and titles
            are that short, and a corpus of whole sentences has none of them.
        question_share: of the kept texts that contain a question, the share that is shortened to that question. Every
            second one loses its question mark, as in queries.
        validation_share: share of the texts that validate; a text's side depends only on the text and the seed.
        limit: stop after keeping this many texts.
        seed: decides the split and the order of the mix.
        field: the field or column that holds the text.
        on_progress: called every now and then with the number of texts read and kept so far.

    Raises:
        CorpusError: a source cannot be read, or nothing is left; then nothing is written.
        ConfigError: an option is out of range.
    """
    options = CorpusOptions(
        mode=mode,
        min_characters=min_characters,
        max_characters=max_characters,
        fragment_share=fragment_share,
        question_share=question_share,
        validation_share=validation_share,
        limit=limit,
        seed=seed,
        field=field,
    )
    sources = tuple(parse_source(given) for given in inputs)
    folder = Path(output)
    _check_places(sources, folder)

    tally = _Tally(on_progress or (lambda read, kept: None))
    # Filtering comes before mixing, so that the proportions hold among what is kept.
    streams = [(_keep(read_texts(source.location, field=field), options, tally), source.weight) for source in sources]
    texts = itertools.islice(mix(streams, seed=seed), limit)
    first = next(texts, None)
    if first is None:
        raise _nothing_left(tally)
    sides = split(itertools.chain([first], texts), validation_share=validation_share, seed=seed)
    # Cutting comes after the split, so that no piece of a text that validates is ever trained on.
    cut = ((_cut(text, options), validates) for text, validates in sides)
    train, validation = _write(cut, folder)
    report = CorpusReport(sources, options, tally.read, train, validation, tally.dropped)
    write_json(folder / REPORT, report.to_dict())
    tally.on_progress(tally.read, tally.kept)
    return report


def _check_places(sources: Sequence[Source], folder: Path) -> None:
    if not sources:
        raise CorpusError("There is no input.", "Name at least one file, folder or hf: dataset.")
    if folder.exists() and not folder.is_dir():
        raise CorpusError(f"The output {folder} is a file.", "Give a folder as `output`.")
    written = {path.resolve() for path in (folder, folder / TRAIN, folder / VALIDATION)}
    for source in sources:
        if Path(source.location).resolve() in written:
            raise CorpusError(
                f"The output would overwrite its own input {source.location}.", "Give another folder as `output`."
            )


def _keep(texts: Iterable[str], options: CorpusOptions, tally: _Tally) -> Iterator[str]:
    """Yield the texts that are kept, cleaned; count the others by reason."""
    for text in texts:
        tally.read += 1
        if tally.read % _PROGRESS_EVERY == 0:
            tally.on_progress(tally.read, tally.kept)
        for piece in _pieces(text, options.mode):
            if reason := _reason_to_drop(piece, options, tally.seen):
                tally.dropped[reason] += 1
            else:
                tally.kept += 1
                yield piece


def _pieces(text: str, mode: str) -> list[str]:
    if mode == "passage":
        return [clean(text)]
    # Headings and list items of web pages end without a full stop, but on their own line.
    return [sentence for line in text.splitlines() for sentence in split_sentences(clean(line))] or [""]


def _cut(text: str, options: CorpusOptions) -> str:
    """Return a question of the text, a fragment of it, or the whole text; the text and the seed decide."""
    # Other keys than the split's: texts that validate are cut as often as the others.
    chance = position(text, seed=f"{options.seed} question")
    if chance < options.question_share and (question := find_question(text, chance / options.question_share)):
        return question
    chance = position(text, seed=f"{options.seed} fragment")
    return cut_fragment(text, chance / options.fragment_share) if chance < options.fragment_share else text


def _reason_to_drop(text: str, options: CorpusOptions, seen: Deduplicator) -> str | None:
    if not text:
        return "empty"
    if len(text) < options.min_characters:
        return "too short"
    if len(text) > options.max_characters:
        return "too long"
    return None if seen.is_new(text) else "duplicate"


def _write(texts: Iterable[tuple[str, bool]], folder: Path) -> tuple[int, int]:
    """Write both sides and return how many texts each got; neither file appears unless both are whole."""
    train = validation = 0
    with atomic_path(folder / TRAIN) as train_path, atomic_path(folder / VALIDATION) as validation_path:
        with (
            train_path.open("w", encoding="utf-8", newline="\n") as train_file,
            validation_path.open("w", encoding="utf-8", newline="\n") as validation_file,
        ):
            for text, validates in texts:
                (validation_file if validates else train_file).write(f"{text}\n")
                validation += validates
                train += not validates
        if not train:
            raise CorpusError(
                f"All {validation} texts went to validation: nothing is left to train on.",
                "Lower `validation_share`, or give more text.",
            )
    return train, validation


def _nothing_left(tally: _Tally) -> CorpusError:
    if not tally.read:
        return CorpusError("The inputs hold no text: nothing is left.", "Check that they are not empty.")
    # Never "duplicate": the first of its kind is kept.
    reason = max(_REMEDIES, key=lambda name: tally.dropped[name])
    return CorpusError(f"{tally.read:,} texts were read, and nothing is left of them.", _REMEDIES[reason])
