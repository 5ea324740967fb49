"""The inverter of packages/multilingual, as it is installed for development."""

import pytest

from unembed.auditing import WordReader
from unembed.checkpoint import fetch_checkpoint
from unembed.hub import installed_inverters
from unembed.inverter import Inverter

TEXTS = {
    "المستشفى قريب من المدرسة": {"المدرسة", "المستشفى", "مدرسة"},
    "Die Lehrerin arbeitet in einer Schule in Berlin.": {"Berlin", "Schule", "Lehrerin", "Lehrer", "arbeitet"},
    "The doctor bought a new car yesterday.": {"doctor", "car", "bought", "yesterday", "new"},
    "El perro duerme debajo de la mesa.": {"perro", "mesa", "duerme", "debajo"},
    "Mon frère travaille dans un hôpital à Paris.": {"frère", "hôpital", "Paris", "travaille"},
    "Mia sorella studia matematica all'università.": {"sorella", "matematica", "università", "studia"},
    "彼は東京の大学で数学を勉強しています。": {"東京", "大学", "数学", "勉強", "東京の", "大学で"},
    "그는 서울에서 음악을 공부한다.": {"서울", "서울에서", "음악", "음악을", "공부"},
    "Mijn moeder drinkt elke ochtend koffie.": {"moeder", "koffie", "ochtend", "drinkt"},
    "Mój brat kupił nowy samochód.": {"brat", "samochód", "nowy", "kupił"},
    "A minha irmã mora em Lisboa com dois gatos.": {"irmã", "Lisboa", "gatos", "mora", "dois"},
    "Моя сестра работает в больнице.": {"сестра", "работает", "больнице"},
    "Annem her sabah çay içer.": {"annem", "Annem", "çay", "sabah", "içer"},
    "他在北京的大学学习历史。": {"北京", "大学", "学习", "历史"},
}


@pytest.fixture(scope="module")
def inverter():
    if "multilingual" not in installed_inverters() or not (fetch_checkpoint("multilingual") / "config.json").is_file():
        pytest.skip("the multilingual inverter is not installed")
    return Inverter.from_pretrained("multilingual", device="cpu")


def test_it_is_small_and_names_its_languages(inverter):
    folder = fetch_checkpoint("multilingual")
    assert sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) <= 60e6
    assert inverter.info.encoder.name == "use-multilingual-v3"
    assert len(inverter.info.languages) == 14
    assert len(inverter.known_words) > 40_000


def test_words_come_back_in_every_language(inverter):
    encoder = inverter.load_encoder(device="cpu")
    found = WordReader(inverter, top=10).read(encoder.encode(list(TEXTS)))
    right = [bool(words & set(found.names_of(row))) for row, words in enumerate(TEXTS.values())]
    assert sum(right) >= 10, [text for text, named in zip(TEXTS, right, strict=True) if not named]


def test_a_text_comes_back_in_part(inverter):
    encoder = inverter.load_encoder(device="cpu")
    recovered = inverter.invert(encoder.encode(list(TEXTS)))
    assert not any("<unk>" in inversion.text for inversion in recovered)
    words = [set(text.strip("。.").split()) for text in TEXTS]
    shared = [len(own & set(one.text.strip(".").split())) for own, one in zip(words, recovered, strict=True)]
    assert sum(shared) >= 8, [inversion.text for inversion in recovered]
