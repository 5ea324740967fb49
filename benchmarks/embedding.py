"""Embedding throughput: our ``Encoder.encode`` against sentence-transformers' own ``SentenceTransformer.encode``.

Both run the same model object over the same texts at the same batch size. Texts have at most 32 tokens, as ``unembed
embed`` cuts them, with the lengths of the real corpus. The vectors must agree up to rounding.
"""

import statistics
from functools import partial
from pathlib import Path

import numpy as np
import torch

from measure import Figure, Result, finish, interleave, make_parser, spread
from texts import CANVAS_LENGTH, make_texts, real_lengths
from unembed.canvas import fit_to_canvas
from unembed.corpus import read_texts
from unembed.encoders import Encoder, known_tokenizer, load_encoder
from unembed.encoders.sentence_transformer import SentenceTransformerEncoder

TARGET = 1.3
_WARM_UP = 256  # texts


def choose_texts(encoder: Encoder, count: int, corpus: Path | None) -> list[str]:
    """Return texts on a canvas of 32: of common words, or the first ones of a corpus."""
    if corpus is None:
        return list(make_texts(real_lengths(count)))
    lines = [text for text, _ in zip(read_texts(corpus), range(count), strict=False)]
    return fit_to_canvas(lines, known_tokenizer(encoder), CANVAS_LENGTH)[1]


def main() -> None:
    """Measure both at every batch size, in turn."""
    parser = make_parser(__doc__, repetitions=2)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="a packaged encoder, a folder or a hub id")
    parser.add_argument("--texts", type=int, default=4_096, help="how many texts (default: %(default)s)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--corpus", type=Path, help="take the texts from this file, not from a word list")
    options = parser.parse_args()
    if options.quick:
        options.texts, options.batch_sizes, options.repetitions = 48, [16], 1
    encoder = load_encoder(options.encoder, device="cpu")
    if not isinstance(encoder, SentenceTransformerEncoder):
        parser.error(f"{options.encoder} is not run by sentence-transformers: there is nothing to compare with")
    texts = choose_texts(encoder, options.texts, options.corpus)
    vectors: dict[str, np.ndarray] = {}

    def plain(name: str, batch_size: int) -> None:
        vectors[name] = np.asarray(encoder.model.encode(texts, batch_size=batch_size, show_progress_bar=False))

    def ours(name: str, batch_size: int) -> None:
        vectors[name] = encoder.encode(texts, batch_size=batch_size)

    variants = {
        (name := f"{side}, batch {batch_size}"): partial(encode, name, batch_size)
        for batch_size in options.batch_sizes
        for side, encode in (("plain", plain), ("ours", ours))
    }
    encoder.model.encode(texts[:_WARM_UP], show_progress_bar=False)
    encoder.encode(texts[:_WARM_UP])
    times = interleave(variants, options.repetitions)
    rows, ratios = [], []
    for batch_size in options.batch_sizes:
        names = f"plain, batch {batch_size}", f"ours, batch {batch_size}"
        before, after = (times[name] for name in names)
        difference = float(np.abs(np.subtract(*(vectors[name] for name in names))).max())
        ratios.append(statistics.median(before) / statistics.median(after))
        rates = [spread([len(texts) / each for each in seconds]) for seconds in (before, after)]
        rows.append([str(batch_size), *rates, f"{ratios[-1]:.2f}", f"{difference:.1e}"])
    finish(
        Result(
            title="Embedding",
            compared="`Encoder.encode` against `SentenceTransformer.encode`: the same model object, texts and batch"
            " size.",
            columns=["batch size", "plain, texts/s", "ours, texts/s", "ratio", "largest difference of the vectors"],
            rows=rows,
            figures=[Figure("Ours against plain, at the batch size where we gain least", min(ratios), TARGET)],
            repetitions=options.repetitions,
            sizes={
                "encoder": options.encoder,
                "texts": len(texts),
                "from": options.corpus.name if options.corpus else "a word list, lengths as in the corpus",
                "threads": torch.get_num_threads(),
            },
            times=times,
        ),
        options,
    )


if __name__ == "__main__":
    main()
