"""Texts and token ids with the length and frequency distribution of the real corpus. Needs no file and no torch."""

import random
from collections.abc import Iterable, Iterator

import numpy as np

# How many texts have 1, 2, ... 32 tokens: the first 20,000 lines of the training corpus (english.txt.gz, see the model
# card) in the tokenizer of all-MiniLM-L6-v2, cut to a canvas of 32 by fit_to_canvas. Mean 21.4.
LENGTH_COUNTS = (
    *(0, 0, 0, 2, 128, 306, 554, 633, 690, 682, 685, 694, 661, 641, 680, 676),
    *(589, 618, 575, 577, 588, 565, 563, 560, 527, 466, 480, 432, 435, 447, 382, 5164),
)
CANVAS_LENGTH = len(LENGTH_COUNTS)

# Share of all tokens that the k most frequent ids make up, in the same 20,000 texts.
_FREQUENCY = {1: 0.05, 10: 0.248, 100: 0.468, 1000: 0.686, 4096: 0.857, 10_000: 0.953, 21_085: 1.0}

# Common words of that corpus; each is one token of all-MiniLM-L6-v2.
_WORDS = """
    the of and to in a is that for as was with on by it this are we be from he an at have or not his which you can
    they but were their had has also one our all these more when what other would do been will its first new if there
    who into she than such some most her about may like two your how used no only so after many between my time out
    could where while called use said both over using any up very during through different language people data each
    then because should him me know them did make show made model same three being think results work much now does
    human known found before part number cells within large want under even including often need see system well
    those against find important based since just way get another given united still set due form world became must
    high name several might across go great figure long good without take around american following own text help
    years whether best early until upon little government similar further city present value performance study cell
    common task state back later states thought four small order never down second support better usually national
"""
WORDS = _WORDS.split()


def batch_lengths(batches: int) -> list[int]:
    """Return one length per batch, at evenly spaced quantiles: a few batches then stand for the whole corpus."""
    quantiles = (np.arange(batches) + 0.5) / batches
    shares = np.cumsum(LENGTH_COUNTS) / sum(LENGTH_COUNTS)
    return [int(length) for length in np.searchsorted(shares, quantiles) + 1]


def draw_ids(count: int, vocabulary_size: int, randomness: np.random.Generator) -> np.ndarray:
    """Draw token ids, the most frequent id being 0, as unevenly distributed as those of real texts."""
    ranks = np.interp(randomness.random(count), [0.0, *_FREQUENCY.values()], np.log1p([0, *_FREQUENCY]))
    return np.minimum(np.exp(ranks).astype(np.int64) - 1, vocabulary_size - 1)


def real_lengths(count: int, seed: int = 0) -> list[int]:
    """Draw text lengths as the corpus has them."""
    return random.Random(seed).choices(range(1, CANVAS_LENGTH + 1), LENGTH_COUNTS, k=count)


def make_texts(lengths: Iterable[int], seed: int = 0) -> Iterator[str]:
    """Make one text of common words per length, the same ones for the same seed."""
    draw = random.Random(seed)
    for length in lengths:
        yield " ".join(draw.choices(WORDS, k=length))
