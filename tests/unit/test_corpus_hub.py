"""Streaming from the Hugging Face hub, whose place a small local dataset takes."""

import datasets
import pytest
from datasets.exceptions import DatasetNotFoundError

from unembed.corpus import read_texts
from unembed.errors import CorpusError, MissingExtraError

TEXTS = ["The owl left at dusk.", "It came back at dawn."]


@pytest.fixture
def hub(monkeypatch):
    """A hub that serves the records, or raises the error, that it was given; and remembers what it was asked."""

    class Hub:
        records = tuple({"text": text, "url": "https://example.org"} for text in TEXTS)
        asked = None
        error_on_open = None
        error_while_reading = None

        def load_dataset(self, *args, **options):
            self.asked = (args, options)
            if self.error_on_open:
                raise self.error_on_open
            return datasets.IterableDataset.from_generator(self.generate)

        def generate(self):
            yield from self.records
            if self.error_while_reading:
                raise self.error_while_reading

    hub = Hub()
    monkeypatch.setattr(datasets, "load_dataset", hub.load_dataset)
    return hub


def test_texts_are_streamed_from_the_train_split_without_running_code_of_the_dataset(hub):
    assert list(read_texts("hf:someone/something:part")) == TEXTS
    assert hub.asked == (("someone/something", "part"), {"split": "train", "streaming": True})


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("hf:allenai/c4", ("allenai/c4", "en")),
        ("hf:allenai/c4:fr", ("allenai/c4", "fr")),
        ("hf:c4", ("allenai/c4", "en")),
        ("hf:mc4:ja", ("allenai/c4", "ja")),
        ("hf:allenai/mc4:de", ("allenai/c4", "de")),
        ("hf:someone/something", ("someone/something", None)),
    ],
)
def test_the_config_of_c4_is_a_language_and_mc4_is_found_where_it_moved_to(hub, source, asked):
    read_texts(source)
    assert hub.asked[0] == asked


def test_the_field_option_and_the_only_field_work_as_in_files(hub):
    assert list(read_texts("hf:a/b", field="url")) == ["https://example.org"] * 2
    hub.records = ({"sentence": "alone"}, {"sentence": None})
    assert list(read_texts("hf:a/b")) == ["alone", ""]


def test_a_missing_field_names_those_that_exist(hub):
    with pytest.raises(CorpusError, match=r"no field 'txt'\. Its fields: text, url") as caught:
        list(read_texts("hf:a/b", field="txt"))
    assert "did you mean 'text'?" in caught.value.remedy


@pytest.mark.parametrize("source", ["hf:", "hf:mc4", "hf:allenai/mc4"])
def test_an_address_without_a_dataset_or_a_language_is_refused(hub, source):
    with pytest.raises(CorpusError, match="does not say which") as caught:
        read_texts(source)
    assert "hf:allenai/c4:fr" in caught.value.remedy
    assert hub.asked is None


@pytest.mark.parametrize(
    ("error", "problem", "remedy"),
    [
        (DatasetNotFoundError("Dataset 'a/b' doesn't exist"), "no public dataset 'a/b'", "huggingface.co/datasets"),
        (ValueError("BuilderConfig 'xx' not found."), "the dataset 'a/b' with the config 'xx'", "after a colon"),
        (RuntimeError("Dataset scripts are no longer supported"), "scripts are no longer", "code of its own"),
        (ConnectionError("Couldn't reach 'a/b' on the Hub"), "cannot be read from the Hugging Face hub", "network"),
    ],
)
def test_a_dataset_that_does_not_open_says_why_at_once(hub, error, problem, remedy):
    hub.error_on_open = error
    with pytest.raises(CorpusError, match=problem) as caught:
        read_texts("hf:a/b:xx")
    assert remedy in caught.value.remedy


def test_a_connection_lost_while_reading_is_a_user_error(hub):
    hub.error_while_reading = TimeoutError()
    texts = read_texts("hf:a/b")
    assert next(texts) == TEXTS[0]
    with pytest.raises(CorpusError, match="cannot be read from the Hugging Face hub: TimeoutError"):
        list(texts)


def test_without_datasets_the_hub_says_what_to_install(monkeypatch):
    monkeypatch.setattr("unembed.errors.find_spec", lambda module: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'unembed\[train\]'"):
        read_texts("hf:allenai/c4")
