"""The page's modules by themselves, run by the browser that they are written for."""

import io

import numpy as np
import pytest


@pytest.fixture(scope="module")
def call(browser, address):
    """Imports a module of the page and calls one of its functions."""
    page = browser.new_page()
    page.goto(address)
    folder = page.get_attribute("link[rel=stylesheet]", "href").removesuffix("/style.css")
    yield lambda module, code, *arguments: page.evaluate(
        f"async (given) => {{ const module = await import('/{folder}/{module}'); return ({code})(...given); }}",
        list(arguments),
    )
    page.close()


@pytest.mark.parametrize(
    ("original", "recovered", "kinds"),
    [
        ("The cat sleeps.", "the cat sleeps .", ["same", "same", "same"]),
        ("a café in Rome", "a cafe in paris", ["same", "same", "same", "lost"]),
        ("dog bites man", "man bites dog", ["moved", "moved", "same"]),
        ("the the dog", "the dog", ["same", "lost", "same"]),
        ("one two", "", ["lost", "lost"]),
    ],
)
def test_words_are_compared_as_the_encoder_reads_them(call, original, recovered, kinds):
    code = (
        "(a, b) => module.compareWords(a, b)[0].filter((piece) => piece.kind !== 'between').map((piece) => piece.kind)"
    )
    found = call("diff.js", code, original, recovered)
    assert sorted(found) == sorted(kinds)
    assert (
        "".join(
            call("diff.js", "(a, b) => module.compareWords(a, b)[0].map((piece) => piece.text)", original, recovered)
        )
        == original
    )


@pytest.mark.parametrize("cut", range(1, 60, 7))
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_events_are_read_however_they_are_cut(call, cut, newline):
    lines = [
        ": a comment",
        "",
        "event: step",
        'data: {"text": "a\\nb é"}',
        "",
        'data: {"n":',
        "data: 1}",
        "",
        "event: cut off",
    ]
    code = """async (text, cut) => {
        const bytes = new TextEncoder().encode(text);
        const stream = new ReadableStream({start(controller) {
            for (let at = 0; at < bytes.length; at += cut) controller.enqueue(bytes.slice(at, at + cut));
            controller.close();
        }});
        const events = [];
        for await (const event of module.readEvents(stream)) events.push(event);
        return events;
    }"""
    assert call("events.js", code, newline.join(lines), cut) == [
        {"event": "step", "data": {"text": "a\nb é"}},
        {"event": "message", "data": {"n": 1}},
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("[1, -2.5, 3e-2]", [[1, -2.5, 0.03]]),
        ("1 2\n3", [[1, 2, 3]]),
        ("[0.1 0.2 0.3]", [[0.1, 0.2, 0.3]]),
        ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ("[1, 2]\n[3, 4]", [[1, 2], [3, 4]]),
        ('{"id": 7, "vector": [1, 2]}\n{"id": 8, "vector": [3, 4]}\n', [[1, 2], [3, 4]]),
        ("1,2\n3,4\n5,6", [[1, 2], [3, 4], [5, 6]]),
        ("id,x,y\na,1,2\nb,3,4\n", [[1, 2], [3, 4]]),
        ('id;vector\n7;"[1, 2]"\n8;"[3, 4]"', [[1, 2], [3, 4]]),
        ("0.5\t1\n0.25\t2", [[0.5, 1], [0.25, 2]]),
        ('{"model": "m", "data": [{"embedding": [1, 2]}, {"embedding": [3, 4]}]}', [[1, 2], [3, 4]]),
    ],
)
def test_vectors_are_read_in_every_usual_form(call, text, rows):
    assert call("vectors.js", "(text) => module.readText(text)", text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1 2 3 4", [[1, 2], [3, 4]]),
        ("[1 2]\n[3 4]\n[5 6]", [[1, 2], [3, 4], [5, 6]]),
        ("9,1,2\n8,3,4", [[1, 2], [3, 4]]),
    ],
)
def test_with_the_dimension_known_several_vectors_are_never_taken_for_one(call, text, rows):
    assert call("vectors.js", "(text) => module.readText(text, 2)", text) == rows


@pytest.mark.parametrize("compression", ["snappy", "none"])
def test_parquet_files_are_read(call, compression, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    vectors = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    table = pa.table({"id": range(300), "text": ["x"] * 300, "embedding": list(vectors)})
    pq.write_table(table, tmp_path / "v.parquet", compression=compression)
    code = "async (bytes) => (await module.readParquet(new Uint8Array(bytes).buffer)).map((row) => Array.from(row))"
    read = call("parquet.js", code, list((tmp_path / "v.parquet").read_bytes()))
    np.testing.assert_allclose(read, vectors, rtol=1e-6)


def test_a_parquet_file_that_cannot_be_read_says_why(call, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    code = """async (bytes) => {
        try { return await module.readParquet(new Uint8Array(bytes).buffer); }
        catch (problem) { return problem.message; }
    }"""
    pq.write_table(pa.table({"embedding": [[1.0, 2.0]]}), tmp_path / "z.parquet", compression="zstd")
    assert "compressed with ZSTD" in call("parquet.js", code, list((tmp_path / "z.parquet").read_bytes()))
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "t.parquet")
    assert "No column" in call("parquet.js", code, list((tmp_path / "t.parquet").read_bytes()))
    assert "not a .parquet file" in call("parquet.js", code, list(b"nonsense" * 5))


def test_a_csv_cell_is_never_a_formula(call):
    rows = [["=1+1", "+a", "-b", "@c", 'say "x", y', "fine"], [1, -2]]
    text = call("csv.js", "(rows) => module.toCsv(rows)", rows)
    assert text == '\'=1+1,\'+a,\'-b,\'@c,"say ""x"", y",fine\r\n1,-2\r\n'


def test_a_file_of_thirty_megabytes_is_read_in_a_moment(call):
    code = """(header) => {
        const bytes = new Uint8Array(header.length + 10000 * 768 * 4);
        bytes.set(header);
        const began = performance.now();
        const rows = module.readNpy(bytes.buffer);
        return [rows.length, rows[0].length, performance.now() - began];
    }"""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (10000, 768)})
    rows, columns, milliseconds = call("npy.js", code, list(file.getvalue()))
    assert (rows, columns) == (10000, 768)
    assert milliseconds < 1500


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", "|i1", "|u1", ">i2", "<i4"])
def test_npy_files_are_read_as_numpy_reads_them(call, dtype):
    array = np.array([[0, 1, 100, 3], [120, 0.00001, 6, 127]], dtype=dtype)
    for saved in (array, array[1]):
        file = io.BytesIO()
        np.save(file, saved)
        code = "(bytes) => module.readNpy(new Uint8Array(bytes).buffer).map((row) => Array.from(row))"
        np.testing.assert_array_equal(call("npy.js", code, list(file.getvalue())), np.atleast_2d(saved).astype(float))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(["text"]), "plain numbers"),
        (np.zeros((2, 2, 2)), "shape (2, 2, 2)"),
        (np.asfortranarray(np.zeros((2, 3))), "shape (2, 3)"),
    ],
)
def test_other_npy_files_are_refused_with_a_reason(call, array, message):
    file = io.BytesIO()
    np.save(file, array)
    code = """(bytes) => {
        try { return module.readNpy(new Uint8Array(bytes).buffer); } catch (problem) { return problem.message; }
    }"""
    assert message in call("npy.js", code, list(file.getvalue()))


def test_a_search_that_is_far_behind_plays_faster(call):
    code = """async (frames) => {
        const player = new module.Player(() => {}, {matches: false});
        player.speed = 4;
        player.extend(frames);
        player.finish();
        const start = performance.now();
        while (player.playing) await new Promise((resolve) => setTimeout(resolve, 5));
        return (performance.now() - start) / frames;
    }"""
    assert call("player.js", code, 40) < 0.6 * call("player.js", code, 4)
