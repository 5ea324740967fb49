"""Files of many vectors: a table that fills while it is read."""

import csv
import io
import json

import numpy as np
import pytest

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect


@pytest.fixture
def give(tmp_path):
    """Chooses a file of some content."""

    def give(page, name: str, content: bytes) -> None:
        page.locator("label", has=page.locator("input[name=mode][value=vector]")).click()
        (tmp_path / name).write_bytes(content)
        page.set_input_files("#file", tmp_path / name)

    return give


@pytest.fixture(scope="module")
def vectors(encoder) -> np.ndarray:
    texts = ["the cat sleeps.", "a dog plays in the snow.", "the king walks home today.", "rain falls on the roof."]
    return np.asarray(encoder.encode(texts), dtype=np.float32)


def as_npy(vectors) -> bytes:
    file = io.BytesIO()
    np.save(file, vectors)
    return file.getvalue()


def as_parquet(vectors) -> bytes:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"embedding": list(vectors)}), file)
    return file.getvalue()


FORMS = {
    "v.npy": as_npy,
    "v.json": lambda vectors: json.dumps(vectors.tolist()).encode(),
    "v.jsonl": lambda vectors: "\n".join(json.dumps({"vector": row}) for row in vectors.tolist()).encode(),
    "v.csv": lambda vectors: "\n".join(",".join(map(str, row)) for row in vectors.tolist()).encode(),
    "v.parquet": as_parquet,
}


def cells(page, column: int) -> list[str]:
    return page.locator(f"#many-rows td:nth-child({column})").all_inner_texts()


@pytest.mark.parametrize("name", FORMS)
def test_a_file_becomes_a_table_whatever_its_form(page, give, vectors, name):
    give(page, name, FORMS[name](vectors))
    expect(page.locator("#many-state")).to_contain_text("4 vectors, all read.")
    assert cells(page, 1) == ["1", "2", "3", "4"]
    assert all(cells(page, 2))
    assert all(cells(page, 3))
    assert all(level in ("close", "rough", "noise") for level in cells(page, 4))
    expect(page.locator("#row-count")).to_have_text("4")


def test_three_pasted_vectors_are_three(page, vectors):
    page.locator("label", has=page.locator("input[name=mode][value=vector]")).click()
    page.fill("#vector", "\n".join(" ".join(map(str, row)) for row in vectors[:3].tolist()))
    page.press("#vector", "Enter")
    expect(page.locator("#many-state")).to_contain_text("3 vectors, all read.")


def test_a_row_is_opened_above(page, give, vectors, finished):
    give(page, "v.npy", as_npy(vectors))
    expect(page.locator("#many-state")).to_contain_text("all read.")
    page.locator("#many-rows button").nth(2).click()
    expect(page.locator("#row")).to_have_value("3")
    finished(page)
    expect(page.locator("#results .card .text")).to_have_text(cells(page, 3)[2])


def test_rows_are_filtered_sorted_and_downloaded(page, give, vectors):
    give(page, "v.npy", as_npy(vectors))
    expect(page.locator("#many-state")).to_contain_text("all read.")
    texts_before = cells(page, 3)
    page.select_option("#many-sort", "text")
    texts = cells(page, 3)
    assert texts == page.evaluate("(texts) => texts.toSorted((a, b) => a.localeCompare(b))", texts)
    assert texts != texts_before
    word = cells(page, 2)[0].split()[0]
    page.fill("#many-filter", word)
    assert cells(page, 2)
    assert all(word in f"{words} {text}" for words, text in zip(cells(page, 2), cells(page, 3), strict=True))
    page.fill("#many-filter", "no such word")
    expect(page.locator("#many-page")).to_have_text("No vector has it.")
    page.fill("#many-filter", "")
    with page.expect_download() as download:
        page.click("#many-download")
    assert download.value.suggested_filename == "v-read.csv"
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    assert [row["text"] for row in rows] == cells(page, 3)
    assert set(rows[0]) == {"row", "words", "text", "reliability", "reason"}


def test_ten_thousand_rows_fill_while_they_arrive_and_can_be_stopped(page, give):
    random = np.random.default_rng(0).normal(size=(10_050, 16)).astype(np.float32)
    give(page, "many.npy", as_npy(random / np.linalg.norm(random, axis=1, keepdims=True)))
    expect(page.locator("#many-state")).to_contain_text("Words: ")
    expect(page.locator("#many-state")).to_contain_text("The file has 10,050; the first 10,000 are read.")
    expect(page.locator("#many-page")).to_have_text("1 to 50 of 10,000")
    expect(page.locator("#many-state")).to_contain_text("Texts: ", timeout=120_000)
    page.wait_for_function("() => document.querySelector('#many-rows td:nth-child(3)').textContent")
    for _ in range(2):
        page.click("#many-after")
    expect(page.locator("#many-page")).to_have_text("101 to 150 of 10,000")
    assert all(cells(page, 2)), "the words of all are there"
    page.click("#many-stop")
    expect(page.locator("#many-state")).to_contain_text("Stopped.")
    page.wait_for_function("() => fetch('/api/queue').then(answer => answer.json()).then(queue => queue.running === 0)")


def test_vectors_of_another_model_are_refused_with_a_reason(page, give):
    give(page, "wide.npy", as_npy(np.ones((3, 7), dtype=np.float32)))
    expect(page.locator("#alert")).to_contain_text("7 numbers, not 16")
