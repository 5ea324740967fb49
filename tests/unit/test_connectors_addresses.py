"""Addresses of vectors: told from texts, shown without passwords, explained when they are wrong."""

import pytest

import stores
from stores import TEXTS, VECTORS
from unembed.connectors import is_vector_uri, mask_passwords, open_vectors
from unembed.errors import MissingExtraError, VectorError


@pytest.mark.parametrize(
    ("name", "is_uri"),
    [
        ("chroma:./db#a", True),
        ("npy:a.npy", True),
        ("faiss: a word", False),
        ("chroma", False),
        ("postgresql://me:secret@host/db#docs.embedding", True),
        ("mysql://host/db", True),
        ("https://me:secret@host/page", True),
        ("https://example.com/page", False),
        ("see https://example.com/page", False),
    ],
)
def test_an_address_is_told_from_a_text(name, is_uri):
    assert is_vector_uri(name) == is_uri


@pytest.mark.parametrize("scheme", ["mysql", "https"])
def test_a_database_that_cannot_be_read_is_named_without_its_password(scheme):
    with pytest.raises(VectorError, match=rf"{scheme}://me:\*\*\*@host/db") as caught:
        open_vectors(f"{scheme}://me:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_a_folder_without_its_kind_gets_the_address_to_type(tmp_path):
    stores.chroma(tmp_path / "store", VECTORS, TEXTS)
    with pytest.raises(VectorError, match="is a folder") as caught:
        open_vectors(str(tmp_path / "store"))
    assert f"chroma:{tmp_path / 'store'}#COLLECTION" in caught.value.remedy


def test_a_missing_library_is_named_with_what_to_type(monkeypatch):
    monkeypatch.setattr("unembed.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        open_vectors("chroma:./db#a")
    assert caught.value.remedy == "Run: pip install 'unembed[chroma]'"


SECRETS = ["SECRET", "SE CRET", "S'E\\C", "S@E:/C?", "SE''CRET", "ßé東", "S=E&C", "?password=SE", "a://b:c@d"]


@pytest.mark.parametrize("secret", SECRETS)
def test_no_form_of_a_password_is_shown(secret):
    from urllib.parse import quote

    escaped = secret.replace("\\", "\\\\").replace("'", "\\'")
    encoded = quote(secret, safe="")
    addresses = [
        f"pgvector:postgresql://me:{encoded}@host:5432/db#docs",
        f"pgvector:postgresql://me:{secret}@host/db#docs",
        f"pgvector:postgresql://:{encoded}@host/db",
        f"pgvector:postgresql://host/db?user=me&password={encoded}#docs",
        f"pgvector:postgresql://host/db?%70assword={encoded}&user=me",
        f"pgvector:postgresql://host/db?sslpassword={encoded}",
        f"pgvector:host=h password='{escaped}' dbname=db#docs",
        f"pgvector:password = '{escaped}' host = h",
        f"pgvector:host=h PASSWORD='{escaped}",
        f"pgvector:host=h password={escaped.replace(' ', chr(92) + ' ')} dbname=db",
        f"qdrant:https://host/?api_key={encoded}#docs",
        f"qdrant:https://{encoded}@host#docs",
    ]
    for address in addresses:
        masked = mask_passwords(address)
        assert "***" in masked, address
        for form in (secret, encoded, escaped):
            assert form not in masked, (address, masked)
        assert mask_passwords(masked) == masked
        assert masked.endswith("#docs") == address.endswith("#docs")


@pytest.mark.parametrize(
    "address",
    [
        "pgvector:postgresql://me@host:5432/db?passfile=/home/me/.pgpass&sslmode=require#docs.embedding",
        "pgvector:host=h user=me dbname=db#docs",
        "qdrant:http://localhost:6333#docs",
        "chroma:./db#notes",
        "npy:C:/vectors.npy",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address):
    assert mask_passwords(address) == address
