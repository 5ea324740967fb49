"""Results on stdout."""

import json

from unembed.cli.output import format_value, show_json, show_result


def test_json_is_one_document_that_keeps_every_script(capsys, tmp_path):
    show_json({"text": "Zoë 東京", "path": tmp_path})
    out, err = capsys.readouterr()
    assert json.loads(out) == {"text": "Zoë 東京", "path": str(tmp_path)}
    assert "Zoë 東京" in out
    assert err == ""


def test_rows_become_a_table_or_json(capsys):
    rows = {"first": {"rows": 12345, "share": 0.123456}, "second": {"rows": 1, "share": 1.0}}
    show_result(rows, title="Things", as_json=False)
    table = capsys.readouterr().out
    for part in ("Things", "first", "second", "rows", "share", "12,345", "0.1235"):
        assert part in table
    show_result(rows, title="Things", as_json=True)
    assert json.loads(capsys.readouterr().out) == rows


def test_a_table_without_rows_is_no_trouble(capsys):
    show_result({}, title="Nothing", as_json=False)
    assert "Nothing" in capsys.readouterr().out


def test_names_are_shown_as_they_are(capsys):
    show_result({"/data/[old]/:cat:": {"rows": 1}}, title="In [red]", as_json=False)
    out = capsys.readouterr().out
    assert "/data/[old]/:cat:" in out
    assert "In [red]" in out


def test_cells_are_easy_to_read():
    assert format_value(1234567) == "1,234,567"
    assert format_value(0.000123456) == "0.0001235"
    assert format_value(True) == "True"
    assert format_value("as it is") == "as it is"
