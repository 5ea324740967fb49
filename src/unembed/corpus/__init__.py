"""Text in: readers, cleaning, splitting, de-duplication. Knows nothing of tokens, vectors or torch."""

from unembed.corpus.bundled import BUNDLED, bundled_texts
from unembed.corpus.cleaning import clean, split_sentences
from unembed.corpus.deduplicate import Deduplicator
from unembed.corpus.mix import Source, mix, parse_source
from unembed.corpus.prepare import prepare
from unembed.corpus.readers import read_texts
from unembed.corpus.report import MODES, CorpusOptions, CorpusReport
from unembed.corpus.split import split

__all__ = [
    "BUNDLED",
    "MODES",
    "CorpusOptions",
    "CorpusReport",
    "Deduplicator",
    "Source",
    "bundled_texts",
    "clean",
    "mix",
    "parse_source",
    "prepare",
    "read_texts",
    "split",
    "split_sentences",
]
