"""How well an inverter says how long texts are, beyond what it writes; with ``--store`` it learns that first.

The store must have been embedded with a large ``--canvas-length``. Each file is measured twice: its lines as they are,
and the starts of those that are long enough, cut to ``--cut`` tokens.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from measure import Result, finish, make_parser
from unembed.config import ExtentConfig
from unembed.encoders import Encoder
from unembed.inverter import Inverter
from unembed.model.extent import Extent
from unembed.model.packing import TABLES
from unembed.store import Store
from unembed.training.length import fit_extent

_OURS = ("The cat is sleeping on the sofa.", "She bought a new car last week.")


def add_extent(inverter: Inverter, store: Store, longest: int, seed: int) -> None:
    """Give an inverter an extent, and fit it on a store."""
    model = inverter.model
    config = model.config.model_copy(update={"extent": ExtentConfig(longest=longest)})
    model.config, inverter.info = config, inverter.info.model_copy(update={"model": config})
    torch.manual_seed(seed)
    model.extent = Extent(config.extent, model.extent_features(torch.zeros(1, config.embedding_dim)).shape[1])
    fit_extent(model, store, seed, lambda *stage: print(f"\r  {stage[1]}/{stage[2]}", end="", file=sys.stderr))


def measure(inverter: Inverter, encoder: Encoder, texts: Sequence[str]) -> list[str]:
    """Return the figures of some texts."""
    true = np.array([len(ids.ids) for ids in inverter.tokenizer.encode_batch(list(texts), add_special_tokens=False)])
    lengths = inverter.text_lengths(encoder.encode(list(texts)))
    assert lengths is not None
    low, middle, high = lengths.T
    canvas = inverter.info.model.canvas_length
    said, long = low > canvas, true > canvas
    return [
        f"{len(texts)}",
        f"{true.mean():.0f}",
        f"{middle.mean():.0f}",
        f"{(low <= true).mean():.2f}",
        f"{((low <= true) & (true <= high)).mean():.2f}",
        f"{said[~long].mean():.2f}" if (~long).any() else "",
        f"{said[long].mean():.2f}" if long.any() else "",
    ]


def main() -> None:
    """Fit, if a store is given, and measure each file."""
    parser = make_parser(__doc__, repetitions=1)
    parser.add_argument("files", nargs="*", type=Path, help="files with a text per line")
    parser.add_argument("--model", default="default", help="the inverter (default: %(default)s)")
    parser.add_argument("--store", type=Path, help="a store of long texts, to fit on")
    parser.add_argument("--longest", type=int, default=128, help="tokens that are told apart (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=300, help="lines of each file (default: %(default)s)")
    parser.add_argument("--cut", nargs="*", type=int, default=[32, 64], help="(default: %(default)s)")
    parser.add_argument("--output", type=Path, help="where to write the inverter, in 8 and 16 bits")
    options = parser.parse_args()
    inverter = Inverter.from_pretrained(options.model, device="cpu")
    if options.store:
        add_extent(inverter, Store(options.store), options.longest, 0)
    if options.output:
        inverter.save_pretrained(options.output, "compact", in_8_bits=(*TABLES, "surrogate.*"))
    encoder = inverter.load_encoder(device="cpu")
    rows = []
    for file in options.files or [None]:
        lines = file.read_text(encoding="utf-8").splitlines()[: options.lines] if file else list(_OURS)
        name = file.stem if file else "our own"
        rows.append([name, "as they are", *measure(inverter, encoder, lines)])
        for cut in options.cut:
            encoded = inverter.tokenizer.encode_batch(lines, add_special_tokens=False)
            starts = [
                line[: tokens.offsets[cut - 1][1]]
                for line, tokens in zip(lines, encoded, strict=True)
                if len(tokens.ids) >= cut
            ]
            if starts:
                rows.append([name, f"cut to {cut}", *measure(inverter, encoder, starts)])
    finish(
        Result(
            title="How long texts are",
            compared="The estimated number of tokens with the true one.",
            columns=[
                "texts",
                "",
                "n",
                "tokens",
                "estimated",
                "not below the least",
                "in the range",
                "said to be too long: others",
                "said to be too long: long ones",
            ],
            rows=rows,
            figures=[],
            repetitions=1,
            sizes={"lines": options.lines, "canvas": inverter.info.model.canvas_length},
            notes=["The range should hold 0.80 of the texts, and 0.90 should not be below its least."],
        ),
        options,
    )


if __name__ == "__main__":
    main()
