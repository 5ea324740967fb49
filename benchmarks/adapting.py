"""Adapting an inverter to another encoder: how much it reads with 100, 1,000 and 10,000 pairs, beside its base.

The pairs are texts with their vectors by both encoders. The texts to read back are others: the first lines of each file
that a canvas holds. With ``--vectors`` no encoder is needed: some rows of a leaked file are the pairs, and other rows
are read back. ``--pairs 0`` is the attack without pairs: the vectors of the texts of the pairs, without these texts,
and as many other texts of the same file.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from measure import Figure, Result, finish, make_parser
from unembed.adaptation import ENOUGH, OwnTexts, Pairs, embed_own, pair_known
from unembed.config import DecodingConfig, parse
from unembed.corpus import BUNDLED, bundled_texts, read_texts
from unembed.encoders import Encoder, EncoderDescription, load_encoder, quicker
from unembed.errors import AlignmentError
from unembed.evaluation import Bootstrap
from unembed.inverter import Inverter
from unembed.measures import BY_NAME, Forms, compare
from unembed.measures.content import content_precision, content_recall
from unembed.model.readout import bag_f1

SIZES = (100, 1_000, 10_000)
_OWN_TEXTS = 20_000
COLUMNS = {
    "token_f1": "token F1",
    "rouge_l": "ROUGE-L",
    "exact_match": "exact match",
    "content_f1": "content word F1",
    "readout_f1": "readout F1",
    "cosine": "cosine",
}
# The share of its base's token F1 that an inverter should keep, and with how many pairs.
_KEPT, _KEPT_WITH = 0.7, 1_000
_TOGETHER = 8
_BOOTSTRAP = Bootstrap()


@dataclass(frozen=True)
class Task:
    """Texts to read back, with their vectors by both encoders."""

    name: str
    texts: list[str]
    pairs: Pairs


@dataclass(frozen=True)
class Recovered:
    """What an inverter made of a task, and its figures: one value per text."""

    texts: list[str]
    values: dict[str, np.ndarray]


def choose_texts(inverter: Inverter, lines: Sequence[str], count: int) -> list[str]:
    """Return the first different lines that a canvas holds whole."""
    longest = inverter.info.model.canvas_length
    different = dict.fromkeys(line.strip() for line in lines)
    fitting = (text for text in different if 0 < len(_ids(inverter, text)) <= longest)
    return list(islice(fitting, count))


def embed(texts: Sequence[str], other: Encoder, own: Encoder, base: Inverter, folder: Path, origin: str) -> Pairs:
    """Embed texts with both encoders. Benchmarks of other encoders use the base's own vectors again."""
    theirs, ours = (embed_by(texts, encoder, base, folder, origin) for encoder in (other, own))
    return Pairs(other.description, ours.ids, theirs.vectors, ours.vectors, origin)


def embed_by(texts: Sequence[str], encoder: Encoder, base: Inverter, folder: Path, origin: str) -> OwnTexts:
    """Embed texts with one encoder. The vectors stay in a folder that is named after the encoder and the texts."""
    return embed_own(
        texts,
        encoder,
        folder / encoder.description.name.replace("/", "_") / digest_of(texts),
        tokenizer=base.tokenizer,
        canvas_length=base.info.model.canvas_length,
        origin=origin,
    )


def digest_of(texts: Sequence[str]) -> str:
    """Return a name for texts."""
    return sha256("\n".join(texts).encode()).hexdigest()[:12]


def embed_in_blocks(
    texts: Sequence[str], sizes: Sequence[int], other: Encoder, own: Encoder, base: Inverter, folder: Path, origin: str
) -> Pairs:
    """Embed texts, those of each size apart: a later run with more pairs embeds the additional ones only."""
    bounds = [0, *(size for size in sorted(sizes) if 0 < size < len(texts)), len(texts)]
    return join([embed(texts[first:last], other, own, base, folder, origin) for first, last in pairwise(bounds)])


def join(parts: Sequence[Pairs]) -> Pairs:
    """Return all pairs of several lots."""
    return replace(
        parts[0],
        ids=[ids for part in parts for ids in part.ids],
        theirs=np.concatenate([part.theirs for part in parts]),
        ours=np.concatenate([part.ours for part in parts]),
    )


def first_of(pairs: Pairs, count: int) -> Pairs:
    """Return the first of some pairs."""
    return replace(pairs, ids=pairs.ids[:count], theirs=pairs.theirs[:count], ours=pairs.ours[:count])


def split_leaked(
    base: Inverter, own: Encoder, name: str, texts: Sequence[str], vectors: np.ndarray, most: int, count: int, seed: int
) -> tuple[Pairs, Task]:
    """Divide leaked pairs at random: ``most`` to adapt with; to read back, ``count`` others that a canvas holds."""
    if len(texts) != len(vectors):
        sys.exit(f"There are {len(texts):,} texts, but {len(vectors):,} vectors. Give one text per row.")
    order = np.random.default_rng(seed).permutation(len(texts))
    row_of = {texts[row].strip(): row for row in order[::-1]}  # of equal texts the one that is first in the order
    wanted = choose_texts(base, [texts[row] for row in order[::-1]], count)
    chosen = [row for row in row_of.values() if texts[row].strip() not in set(wanted)][::-1][:most]
    description = EncoderDescription.of_vectors(name, vectors)

    def pair(rows: Sequence[int]) -> Pairs:
        part = np.asarray(vectors[rows], dtype=np.float32)
        return pair_known(
            [texts[row] for row in rows], part, description, own, tokenizer=base.tokenizer, origin="leaked"
        )

    return pair(chosen), Task("leaked texts", wanted, pair([row_of[text] for text in wanted]))


def recover(
    inverter: Inverter, task: Task, vectors: np.ndarray, encoder: Encoder | None, options: DecodingConfig
) -> Recovered:
    """Read texts back from vectors (n, d) and measure them; with the encoder also by their cosine."""
    texts, ids = task.texts[: len(vectors)], task.pairs.ids[: len(vectors)]
    together = _TOGETHER if options.searches else len(vectors)
    found = []
    for start in range(0, len(vectors), together):
        part = vectors[start : start + together]
        found += inverter.invert(part, options, encoder=encoder if options.needs_encoder else None)
        if options.searches:
            print(f"  {len(found)}/{len(vectors)} searched", file=sys.stderr, flush=True)
    forms = Forms(
        [each.ids for each in found],
        [each.text for each in found],
        encoder.encode([each.text for each in found]) if encoder else None,
    )
    measures = [BY_NAME[name] for name in ("token_f1", "rouge_l", "exact_match", "cosine")]
    values = compare(forms, Forms(ids, texts, vectors), measures)
    values["content_f1"] = np.array([_content_f1(each.text, text) for each, text in zip(found, texts, strict=True)])
    if not options.searches:
        values["readout_f1"] = _readout_f1(inverter, vectors, ids)
    return Recovered([each.text for each in found], values)


def _content_f1(recovered: str, reference: str) -> float:
    precision, recall = content_precision(recovered, reference), content_recall(recovered, reference)
    return 2 * precision * recall / max(precision + recall, 1e-9)


@torch.no_grad()
def _readout_f1(inverter: Inverter, vectors: np.ndarray, ids: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the token F1 of the readout alone for each text, set size known."""
    readout = inverter.model.readout
    given = inverter.map_vectors(torch.from_numpy(vectors.astype(np.float32)))
    return np.array(
        [float(bag_f1(readout(given[row, None]), torch.tensor([text]), readout.words)) for row, text in enumerate(ids)]
    )


def _ids(inverter: Inverter, text: str) -> list[int]:
    ids: list[int] = inverter.tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def make_row(task: Task, what: str, how: str, recovered: Recovered, base: Recovered | None) -> list[str]:
    """Return a row of the table; the last cell compares token F1 with that of the base on the same texts."""
    cells = []
    for name in COLUMNS:
        figure = _BOOTSTRAP.mean(recovered.values[name]) if name in recovered.values else None
        cells.append(f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})" if figure else "")
    share = ""
    if base:
        ratio = _BOOTSTRAP.ratio(recovered.values["token_f1"], base.values["token_f1"])
        share = f"{ratio.value:.0%} ({ratio.low:.0%} to {ratio.high:.0%})"
    return [task.name, what, how, f"{len(recovered.texts)}", *cells, share]


def refused_row(reason: str) -> list[str]:
    """Return a row that says why an inverter could not be had."""
    return ["all", "0 pairs", f"refused: {reason.split(':')[0]}", "0", *("" for _ in COLUMNS), ""]


def show(task: Task, recovered: Recovered, count: int) -> None:
    """Print texts beside what was recovered."""
    for text, found, score in islice(
        zip(task.texts, recovered.texts, recovered.values["token_f1"], strict=False), count
    ):
        print(f"  {score:.2f} {text}\n       {found}", flush=True)


def prepare(
    options: argparse.Namespace, base: Inverter, own: Encoder, other: Encoder | None, folder: Path
) -> tuple[Pairs, OwnTexts | None, list[Task]]:
    """Return the pairs to adapt with, as many as the largest size, other texts if needed, and those to read back."""
    most = max(options.pairs)
    if other is None:
        texts = options.vector_texts.read_text(encoding="utf-8").splitlines()
        vectors = np.load(options.vectors, mmap_mode="r")
        pairs, task = split_leaked(base, own, options.encoder, texts, vectors, most, options.count, options.seed)
        return pairs, None, [task]
    source, origin = (read_texts(options.texts), options.texts.name) if options.texts else (bundled_texts(), BUNDLED)
    held_out = {
        file.stem: choose_texts(base, file.read_text(encoding="utf-8").splitlines(), options.count)
        for file in options.files
    }
    unseen = {text for texts in held_out.values() for text in texts}
    usable = (text for text in dict.fromkeys(source) if text not in unseen)
    chosen = list(islice(usable, most))
    texts = list(islice(usable, _OWN_TEXTS if 0 in options.pairs else ENOUGH))
    others = embed_by(texts, own, base, folder, origin) if texts else None
    pairs = embed_in_blocks(chosen, options.pairs, other, own, base, folder, origin)
    tasks = [Task(name, texts, embed(texts, other, own, base, folder, name)) for name, texts in held_out.items()]
    return pairs, others, tasks


def adapt(base: Inverter, pairs: Pairs, others: OwnTexts | None, size: int, seed: int) -> Inverter:
    """Adapt with the first pairs and other texts; with no pairs, with all vectors of the other encoder."""
    if size:
        return base.adapt_to(first_of(pairs, size), others=others, seed=seed)
    assert others is not None
    return base.adapt_unpaired_to(pairs.theirs, pairs.encoder, others, seed=seed)


def measure_all(
    options: argparse.Namespace,
    base: Inverter,
    own: Encoder,
    other: Encoder | None,
    pairs: Pairs,
    others: OwnTexts | None,
    tasks: list[Task],
) -> Iterator[tuple[list[str], str, Recovered, Figure | None, str]]:
    """Yield each row, its name, what was recovered, its figure if it has a target, and a note."""
    blind = DecodingConfig()
    guided = parse(DecodingConfig, {"strategy": "guided", "guided": {"calls": options.calls}}, "the options")
    own_results = {task.name: recover(base, task, task.pairs.ours, own, blind) for task in tasks}
    for task in tasks:
        row = make_row(task, f"{base.name}, given its own vectors", "blind", own_results[task.name], None)
        yield row, f"{task.name}, base", own_results[task.name], None, ""
    for size in options.pairs:
        begun = time.process_time()
        try:
            adapted = adapt(base, pairs, others, size, options.seed)
        except AlignmentError as error:
            print(f"  {size} pairs: {error}", file=sys.stderr, flush=True)
            yield refused_row(str(error)), f"{size} pairs", Recovered([], {}), None, f"Without pairs: {error}"
            continue
        seconds = time.process_time() - begun
        assert adapted.adaptation is not None
        how = adapted.adaptation.info
        note = f"{how.pairs:,} pairs: {how.method}, found and tuned in {seconds:.0f} s of computing."
        for task in tasks:
            result = recover(adapted, task, task.pairs.theirs, other, blind)
            if options.show:
                print(f"{task.name}, {how.pairs:,} pairs")
                show(task, result, options.show)
            compared = own_results[task.name]
            kept = float(result.values["token_f1"].sum() / max(compared.values["token_f1"].sum(), 1e-9))
            figure = Figure(f"Share of the base's token F1 with {size:,} pairs, {task.name}", kept, _KEPT)
            row = make_row(task, f"{how.pairs:,} pairs", "blind", result, compared)
            yield row, f"{task.name}, {how.pairs} pairs", result, figure if size == _KEPT_WITH else None, note
            note = ""
            if other and options.guided:
                result = recover(adapted, task, task.pairs.theirs[: options.guided], other, guided)
                if options.show:
                    show(task, result, options.show)
                row = make_row(task, f"{how.pairs:,} pairs", f"guided, {options.calls:,} calls", result, None)
                yield row, f"{task.name}, {how.pairs} pairs, guided", result, None, ""


def main() -> None:
    """Adapt with each number of pairs, and read the texts back."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("encoder", help="the other encoder; with --vectors any name")
    parser.add_argument("files", nargs="*", type=Path, help="texts to read back, one per line")
    parser.add_argument("--model", default="default", help="the inverter to start from (default: %(default)s)")
    parser.add_argument("--pairs", nargs="+", type=int, default=SIZES, help="how many (default: %(default)s)")
    parser.add_argument("--texts", type=Path, help="texts of the pairs (default: those that come with unembed)")
    parser.add_argument("--vectors", type=Path, help="leaked vectors, .npy")
    parser.add_argument("--vector-texts", type=Path, help="their texts, one per line and row")
    parser.add_argument("--count", type=int, default=200, help="texts to read back per file (default: %(default)s)")
    parser.add_argument("--guided", type=int, default=0, help="also search for so many of them (default: %(default)s)")
    parser.add_argument("--calls", type=int, default=1000, help="encoder calls per search (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the folds and of the choice of leaked rows")
    parser.add_argument("--cache", type=Path, help="keep vectors here: a run that was stopped goes on there")
    parser.add_argument("--show", type=int, default=0, help="print so many texts beside what was recovered")
    options = parser.parse_args()
    if bool(options.vectors) != bool(options.vector_texts) or bool(options.vectors) == bool(options.files):
        parser.error("give either files with texts, or both --vectors and --vector-texts")
    if 0 in options.pairs and not options.texts:
        parser.error("--pairs 0 needs --texts: a file with many texts of the kind that is read back")
    if options.quick:
        options.pairs, options.count = [60], 3
    base = Inverter.from_pretrained(options.model, device="cpu")
    own = quicker(base.load_encoder(device="cpu"))
    other = None if options.vectors else load_encoder(options.encoder, device="cpu", precision="auto")
    with TemporaryDirectory() as temporary:
        pairs, others, tasks = prepare(options, base, own, other, options.cache or Path(temporary))
        measured = []
        for each in measure_all(options, base, own, other, pairs, others, tasks):
            print(f"  {' | '.join(each[0])}", file=sys.stderr, flush=True)
            measured.append(each)
    finish(
        Result(
            title=f"Adapting to {options.encoder}",
            compared="Texts read back by an adapted inverter and by its base. Each is given vectors of the same texts "
            "by its own encoder. The cosine is that of the given vector with the recovered text, by that encoder.",
            columns=["texts", "inverter", "search", "n", *COLUMNS.values(), "share of the base's token F1"],
            rows=[row for row, *_ in measured],
            figures=[figure for *_, figure, _ in measured if figure],
            repetitions=1,
            sizes={task.name: f"n = {len(task.texts)}" for task in tasks},
            times={
                name: result.values["token_f1"].round(4).tolist() for _, name, result, *_ in measured if result.values
            },
            notes=[
                f"The texts of the pairs: {pairs.origin}. Intervals: 95 %, bootstrap over texts. The "
                "JSON file has the token F1 of every text, under `times`.",
                *(note for *_, note in measured if note),
            ],
        ),
        options,
    )


if __name__ == "__main__":
    main()
