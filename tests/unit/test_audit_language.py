"""Which language a text is in: named where it can be told, and nothing said where it cannot."""

import pytest
import torch

from unembed.auditing.language import is_in, language_of, languages_of, languages_of_inverter, name_languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The invoice is due on the first of March.", "English"),
        ("Die Rechnung ist am ersten März fällig, und sie ist nicht bezahlt.", "German"),
        ("La facture est à payer dans les trente jours.", "French"),
        ("La factura no se ha pagado en el plazo que se fijó.", "Spanish"),
        ("Il conto non è ancora stato pagato, ma lo sarà.", "Italian"),
        ("Счёт ещё не оплачен", "a language in Cyrillic script"),
        ("请在三月一日前付款", "Chinese or Japanese"),
        ("invoice 2024-118", None),
        ("", None),
    ],
)
def test_a_text_has_the_language_of_its_script_or_of_its_common_words(text, language):
    assert language_of(text) == language


def test_a_foreign_name_does_not_make_a_text_foreign():
    assert language_of("He came back from the Rue de la Paix with a bottle for all of us.") == "English"


def test_a_text_that_cannot_be_told_is_taken_for_the_commonest_language():
    texts = ["Das ist nicht der Hund.", "Ich habe es nicht.", "Tom mag Kekse", "This is the end of it."]
    assert languages_of(texts) == ["German", "German", "German", "English"]
    assert languages_of(["invoice 1", "invoice 2"]) == [None, None]


def test_an_inverter_writes_the_languages_that_it_names_or_that_of_its_commonest_words(build_reader):
    inverter = build_reader("linear")
    base = inverter.model.readout.base
    for word in ("the", "a", "in", "is"):
        base[inverter.tokenizer.token_to_id(word) or 0] = 1.0
    assert languages_of_inverter(inverter) == ("English",)
    inverter.info = inverter.info.model_copy(update={"languages": ("de", "zh")})
    assert languages_of_inverter(inverter) == ("Chinese", "German")


def test_an_inverter_without_a_readout_has_no_known_language(make_inverter):
    with torch.no_grad():
        assert languages_of_inverter(make_inverter()) == ()


def test_a_text_that_is_told_by_its_script_may_be_in_any_language_of_that_script():
    assert is_in("German", ["English", "German"])
    assert is_in("Chinese or Japanese", ["Japanese"])
    assert is_in("a language in Cyrillic script", ["Russian"])
    assert not is_in("a language in Cyrillic script", ["English", "Arabic"])
    assert name_languages(["zh", "de", "xx"]) == ["Chinese", "German", "xx"]
