"""The search without training: how much it reads, with and without the readout of an adapted inverter.

The encoder is only asked for vectors of texts. The texts to read back are the first lines of each file that a canvas
holds. With ``--adapted`` the same search also runs with that inverter's readout, and beside it stands what the adapted
inverter reads blind.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adapting import choose_texts
from measure import Result, finish, make_parser
from unembed.config import DecodingConfig, parse
from unembed.encoders import Encoder, load_encoder
from unembed.evaluation import Bootstrap
from unembed.inverter import Inversion, Inverter
from unembed.measures import BY_NAME, Forms, compare

COLUMNS = {"token_f1": "token F1", "rouge_l": "ROUGE-L", "exact_match": "exact match", "cosine": "cosine"}
_BOOTSTRAP = Bootstrap()


@dataclass(frozen=True)
class Way:
    """A way to read vectors."""

    name: str
    inverter: Inverter
    options: DecodingConfig


@dataclass(frozen=True)
class Recovered:
    """What came back, and its figures: one value per text."""

    found: list[Inversion]
    values: dict[str, np.ndarray]
    seconds: float
    """Of computing, per text."""


def recover(way: Way, texts: Sequence[str], vectors: np.ndarray, encoder: Encoder) -> Recovered:
    """Read texts back from vectors (n, d), one by one, and measure them."""
    found = []
    begun = time.process_time()
    for row, vector in enumerate(vectors):
        found += way.inverter.invert(vector[None], way.options, encoder=encoder)
        print(f"  {way.name}: {row + 1}/{len(vectors)}", file=sys.stderr, flush=True)
    seconds = (time.process_time() - begun) / len(vectors)
    recovered = [each.text for each in found]
    forms = Forms([each.ids for each in found], recovered, encoder.encode(recovered))
    ids = [way.inverter.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    values = compare(forms, Forms(ids, list(texts), vectors), [BY_NAME[name] for name in COLUMNS])
    return Recovered(found, values, seconds)


def make_row(texts: str, way: Way, recovered: Recovered) -> list[str]:
    """Return a row of the table."""
    figures = [_BOOTSTRAP.mean(recovered.values[name]) for name in COLUMNS]
    cells = [f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})" for figure in figures]
    asked = np.mean([each.encoder_calls for each in recovered.found])
    return [texts, way.name, f"{len(recovered.found)}", *cells, f"{asked:.0f}", f"{recovered.seconds:.0f}"]


def show(texts: Sequence[str], recovered: Recovered) -> None:
    """Print texts beside what was recovered."""
    for text, each, score in zip(texts, recovered.found, recovered.values["token_f1"], strict=True):
        print(f"  {score:.2f} {each.score:.3f} {text}\n             {each.text}", flush=True)


def measure_all(
    files: Sequence[Path], count: int, ways: Sequence[Way], encoder: Encoder
) -> Iterator[tuple[list[str], str, Recovered]]:
    """Yield each row, its name, and what was recovered."""
    for file in files:
        texts = choose_texts(ways[0].inverter, file.read_text(encoding="utf-8").splitlines(), count)
        vectors = encoder.encode(texts)
        for way in ways:
            recovered = recover(way, texts, vectors, encoder)
            show(texts, recovered)
            yield make_row(file.stem, way, recovered), f"{file.stem}, {way.name}", recovered


def main() -> None:
    """Read the texts back in each way."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("encoder", help="the encoder under attack")
    parser.add_argument("files", nargs="+", type=Path, help="texts to read back, one per line")
    parser.add_argument("--adapted", help="an adapted inverter, whose readout is used too")
    parser.add_argument("--count", type=int, default=20, help="texts to read back per file (default: %(default)s)")
    parser.add_argument("--calls", type=int, help="texts that the encoder is asked per vector (default: by the effort)")
    parser.add_argument("--language-model", help="a folder or a hub id (default: SmolLM2-135M-Instruct)")
    options = parser.parse_args()
    if options.quick:
        options.count, options.calls = 1, 160
    zero = {"language_model": options.language_model, "calls": options.calls}
    search = parse(DecodingConfig, {"strategy": "zero", "zero": zero}, "the options")
    ways = [Way("zero", Inverter.from_pretrained("default", device="cpu"), search)]
    if options.adapted:
        adapted = Inverter.from_pretrained(options.adapted, device="cpu")
        ways.append(Way("zero, with the adapted readout", adapted, search))
        ways.append(Way("the adapted inverter, blind", adapted, DecodingConfig()))
    encoder = load_encoder(options.encoder, device="cpu")
    measured = []
    for each in measure_all(options.files, options.count, ways, encoder):
        print(f"  {' | '.join(each[0])}", file=sys.stderr, flush=True)
        measured.append(each)
    finish(
        Result(
            title=f"Without training, {options.encoder}",
            compared="Texts read back by a search that asks the encoder for vectors of texts, and knows no more of it.",
            columns=["texts", "way", "n", *COLUMNS.values(), "texts asked", "seconds of computing"],
            rows=[row for row, *_ in measured],
            figures=[],
            repetitions=1,
            sizes={"texts per file": options.count},
            times={name: result.values["token_f1"].round(4).tolist() for _, name, result in measured},
            notes=["Intervals: 95 %, bootstrap over texts. Under times: token F1 of each text. Cosine by the encoder."],
        ),
        options,
    )


if __name__ == "__main__":
    main()
