"""Vectors of PostgreSQL: read in one read-only transaction, with errors that never show a password."""

from collections import Counter

import numpy as np
import pytest

import stores
from stores import EXPECTED, TEXTS, VECTORS, read
from unembed.connectors import open_vectors
from unembed.errors import VectorError


@pytest.mark.parametrize(("kind", "precision"), [("vector", "float32"), ("real[]", "float32"), ("float8[]", "float64")])
def test_a_postgres_table_gives_back_what_was_put_in(kind, precision, postgres):
    table = f"docs_{kind.removesuffix('[]')}"
    uri = stores.to_postgres(postgres, table, kind, VECTORS, TEXTS)
    source, vectors, ids, texts = read(uri)
    assert np.abs(vectors - VECTORS[EXPECTED]).max() < 1e-6
    assert ids == [f"id-{row}" for row in EXPECTED]
    assert texts == [TEXTS[row] for row in EXPECTED]
    assert source.rows == 40
    assert source.storage.precision == precision
    assert "secret" not in source.name
    in_query = postgres.replace("auditor:secret%20%231@", "") + "?user=auditor&password=secret%20%231"
    assert "secret" not in open_vectors(f"pgvector:{in_query}#{table}").name
    assert open_vectors(f"{uri.partition('#')[0]}#public.{table}").rows == 40


def test_a_postgres_transaction_sees_one_moment(postgres):
    import psycopg

    uri = stores.to_postgres(postgres, "moment", "vector", VECTORS, TEXTS)
    source = open_vectors(uri, batch_rows=4)
    with psycopg.connect(postgres) as other:
        other.execute("DELETE FROM moment")
    assert sum(map(len, source.batches)) == 40


def test_a_postgres_that_ends_the_connection_midway_is_an_error(postgres):
    import psycopg

    records = open_vectors(stores.to_postgres(postgres, "ended", "real[]", VECTORS, TEXTS), batch_rows=4).records
    next(records)
    with psycopg.connect(postgres) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unembed'")
    with pytest.raises(VectorError, match="can no longer be read") as caught:
        list(records)
    assert "run again" in caught.value.remedy


def test_a_postgres_machine_that_goes_away_is_noticed_within_minutes(postgres, monkeypatch):
    import psycopg

    connect, opened = psycopg.connect, []
    uri = stores.to_postgres(postgres, "alive", "real[]", VECTORS, TEXTS)
    monkeypatch.setattr(
        psycopg, "connect", lambda *args, **options: opened.append(connect(*args, **options)) or opened[0]
    )
    open_vectors(uri)
    settings = {name: int(value) for name, value in opened[0].info.get_parameters().items() if "keepalives_" in name}
    opened[0].close()
    waited = settings["keepalives_idle"] + settings["keepalives_interval"] * settings["keepalives_count"]
    assert waited <= 120


@pytest.mark.parametrize(
    "statement", ["DELETE FROM guarded", "UPDATE guarded SET content = ''", "CREATE TABLE x (y int)"]
)
def test_postgres_refuses_to_write_through_our_connection(statement, postgres, monkeypatch):
    import psycopg

    with psycopg.connect(postgres) as other:
        other.execute("DROP TABLE IF EXISTS guarded")
    uri = stores.to_postgres(postgres, "guarded", "real[]", VECTORS, TEXTS)
    connect, opened = psycopg.connect, []
    monkeypatch.setattr(
        psycopg, "connect", lambda *args, **options: opened.append(connect(*args, **options)) or opened[0]
    )
    open_vectors(uri)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        opened[0].execute(statement)
    opened[0].close()


def test_postgres_rows_of_mixed_dimensions_and_missing_ones_are_named(postgres):
    import psycopg

    uri = stores.to_postgres(postgres, "mixed", "real[]", VECTORS, TEXTS)
    with psycopg.connect(postgres) as other:
        other.execute("INSERT INTO mixed VALUES ('none', 'x', NULL), ('nan', 'y', '{1,NaN,1,1,1,1,1,1}')")
    skipped = Counter()
    assert sum(len(batch) for batch in open_vectors(uri).usable(skipped)) == 40
    assert skipped == {"not finite": 2}
    with psycopg.connect(postgres) as other:
        other.execute("INSERT INTO mixed VALUES ('short', 'x', '{1,2}')")
    with pytest.raises(VectorError, match="id short has 2 numbers; id id-0 has 8"):
        read(uri)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("secret", "wrong"), "password authentication failed"),
        (("/postgres", "/nowhere"), 'database "nowhere" does not exist'),
        (("127.0.0.1:", "127.0.0.1:1"), "cannot be opened"),
    ],
)
def test_a_postgres_that_does_not_open_says_why_without_the_password(change, problem, postgres):
    with pytest.raises(VectorError, match=problem) as caught:
        open_vectors(f"pgvector:{postgres.replace(*change)}#docs")
    assert "%20%231" not in str(caught.value)
    assert "PGPASSWORD" in caught.value.remedy


def test_a_postgres_table_that_is_not_there_is_named_with_its_neighbours(postgres):
    stores.to_postgres(postgres, "invoices", "vector", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="no table 'invoice.embedding'") as caught:
        open_vectors(f"pgvector:{postgres}#invoice.embedding")
    assert "did you mean 'invoices.embedding'?" in caught.value.remedy


def test_the_address_that_postgres_itself_uses_is_enough(postgres):
    uri = stores.to_postgres(postgres, "plain", "vector", VECTORS, TEXTS)
    source, vectors, _, _ = read(uri.removeprefix("pgvector:"))
    assert np.array_equal(vectors, VECTORS[EXPECTED])
    assert source.name.startswith("pgvector:postgresql://auditor:***@")


def test_a_wrong_password_in_it_is_not_shown(postgres):
    with pytest.raises(VectorError, match="password authentication failed") as caught:
        open_vectors(postgres.replace("secret", "hunter2"))
    assert "hunter2" not in str(caught.value)


def test_the_columns_of_ids_and_texts_can_be_chosen(postgres):
    import psycopg

    uri = stores.to_postgres(postgres, "named", "vector", VECTORS, TEXTS)
    with psycopg.connect(postgres) as other:
        other.execute("ALTER TABLE named ADD title text, ADD number int")
        other.execute("UPDATE named SET title = 'title of ' || id, number = 7")
    _, _, ids, texts = read(uri, id_column="content", text_column="title")
    assert ids == [TEXTS[row] for row in EXPECTED]
    assert texts == [f"title of id-{row}" for row in EXPECTED]
    with pytest.raises(VectorError, match="has no field 'titel'") as caught:
        open_vectors(uri, text_column="titel")
    assert "`text_column`, did you mean 'title'?" in caught.value.remedy
