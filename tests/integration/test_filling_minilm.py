"""Slots filled with the real encoder and the default inverter."""

import pytest

from unembed.inverter import Inverter

NAMES = ["Helena", "Marcus", "Yusuf", "Ingrid", "Priya", "Tobias", "Amara", "Chloe", "Diego", "Hanna", "Oscar", "Lucia"]


@pytest.fixture(scope="module")
def inverter():
    return Inverter.default(device="cpu")


def test_a_name_is_found_with_certainty(inverter, minilm):
    vectors = minilm.encode([f"Dear {name}, thank you for your order." for name in ("Yusuf", "Chloe")])
    found = inverter.fill("Dear {name}, thank you for your order.", vectors, {"name": NAMES}, encoder=minilm)
    assert [filling.answers[0].values["name"] for filling in found] == ["Yusuf", "Chloe"]
    assert {filling.verdict for filling in found} == {"certain"}


def test_a_name_that_is_not_listed_is_not_certain(inverter, minilm):
    vector = minilm.encode(["Dear Bartholomew, thank you for your order."])
    (filling,) = inverter.fill("Dear {name}, thank you for your order.", vector, {"name": NAMES}, encoder=minilm)
    assert filling.verdict in ("a guess", "not in the list")


def test_a_name_is_found_without_the_encoder(inverter, minilm):
    vector = minilm.encode(["Dear Helena, thank you for your order."])
    (filling,) = inverter.fill("Dear {name}, thank you for your order.", vector, {"name": NAMES})
    assert filling.answers[0].values == {"name": "Helena"}
    assert filling.encoder_calls == 0
    assert filling.surrogate_calls > 0


def test_one_pin_in_ten_thousand_is_found_by_embedding_a_fraction(inverter, minilm):
    vector = minilm.encode(["The PIN of your card is 4827."])
    (filling,) = inverter.fill("The PIN of your card is {pin:digits:4}.", vector, encoder=minilm, calls=3000)
    assert filling.answers[0].values == {"pin": "4827"}
    assert filling.encoder_calls <= 3000


def test_two_slots_are_found_together(inverter, minilm):
    vector = minilm.encode(["Ingrid was born in March and lives in Oslo."])
    (filling,) = inverter.fill(
        "{name} was born in {month} and lives in {city}.",
        vector,
        {"name": NAMES, "city": ["Berlin", "Oslo", "Rome", "Lima", "Tunis"]},
        encoder=minilm,
    )
    assert filling.answers[0].values == {"name": "Ingrid", "month": "March", "city": "Oslo"}
