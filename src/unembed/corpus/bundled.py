"""Texts that come with the package, to adapt inverters with."""

from importlib.resources import as_file, files

from unembed.corpus.readers import read_texts

BUNDLED = "sentences, definitions and questions of the package, from WordNet 3.0"


def bundled_texts() -> list[str]:
    """Return about 10,000 short English texts in random order: example sentences, definitions, questions."""
    with as_file(files("unembed.corpus") / "texts" / "everyday.txt.gz") as path:
        return list(read_texts(path))
