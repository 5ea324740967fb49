"""Measures the example sentences of the web page, sorts them from easy to hard, and records the first one.

The sentences are in ``benchmarks/opener.txt``. Each is embedded and read back by the default inverter from the vector
alone, as the page does it: by a search with the inverter's own stand-in for the encoder. The F1 of its content words
decides. The opener is the best one that says something about a person, and that comes back word for
word when the attacker has the encoder. It is recorded as the server streams it, blind and guided. Run it again after
the default inverter has changed:

python benchmarks/opener.py
"""

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from unembed import Inverter, __version__
from unembed.auditing.leaks import find_leaks
from unembed.measures.content import content_precision, content_recall
from unembed.server import ServedModel, Settings, make_app

SENTENCES = Path(__file__).with_name("opener.txt")
SERVER = Path(__file__).parents[1] / "src" / "unembed" / "server"
EASY_FROM = 0.75
"""Content-word F1 from which a sentence is called easy."""
ROUNDS = 20
"""Rounds of a search, as the page asks for them."""
ALONE = {"strategy": "surrogate", "rounds": ROUNDS}
"""What the page asks for when the attacker has only the vector."""


def main() -> None:
    """Write ``examples.json`` and ``static/recorded.json``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=SERVER, help="folder of the two files")
    output = parser.parse_args().output
    inverter = Inverter.default()
    app = make_app(Settings(workers=1), [ServedModel("default", inverter, inverter.load_encoder())])
    with TestClient(app, base_url="http://127.0.0.1") as client:
        measured = rank([measure(client, text) for text in SENTENCES.read_text(encoding="utf-8").splitlines()])
        opener = next(each for each in measured if find_leaks(each["text"]) and comes_back(client, each["text"]))
        measured.remove(opener)
        recording = {
            "identity": client.get("/api/models").json()["models"][0]["identity"],
            "version": __version__,
            "date": date.today().isoformat(),
            "text": opener["text"],
            "runs": [
                {"attacker": "blind", "events": record(client, text=opener["text"], **ALONE)},
                {
                    "attacker": "guided",
                    "events": record(client, text=opener["text"], strategy="guided", rounds=ROUNDS),
                },
            ],
        }
    examples = {"examples": [opener, *measured]}
    (output / "examples.json").write_text(json.dumps(examples, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (output / "static" / "recorded.json").write_text(
        json.dumps(recording, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )
    for each in examples["examples"]:
        print(f"{each['content_f1']:.2f}  {each['text']}")


def measure(client: TestClient, text: str) -> dict[str, Any]:
    """Read a sentence back from its vector alone."""
    answer = client.post("/api/invert", json={"text": text, **ALONE}).json()
    recall, precision = content_recall(answer["text"], text), content_precision(answer["text"], text)
    f1 = 2 * recall * precision / max(1e-9, recall + precision)
    hits = sum(word["fate"] == "same" for word in answer["words"])
    return {
        "text": text,
        "difficulty": "easy" if f1 >= EASY_FROM else "hard",
        "content_f1": round(f1, 3),
        "words": round(hits / max(1, len(answer["headline"]["words"])), 3),
    }


def rank(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort from easy to hard; of equals, those first whose words are read off the vector."""
    return sorted(measured, key=lambda each: (-each["content_f1"], -each["words"]))


def comes_back(client: TestClient, text: str) -> bool:
    """Whether a sentence comes back word for word with the encoder."""
    answer = client.post("/api/invert", json={"text": text, "strategy": "guided", "rounds": ROUNDS}).json()
    return bool(answer["measures"]["exact_match"])


def record(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    """Return the events of one inversion, as the page gets them; their numbers with four digits."""
    text = client.post("/api/invert/stream", json=body).text
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("event:")]
    return [
        {"event": name.removeprefix("event: "), "data": shorten(json.loads(data.removeprefix("data: ")))}
        for name, data in blocks
        if name != "event: queued"
    ]


def shorten(value: Any) -> Any:
    """Round every number of a JSON value."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: shorten(each) for name, each in value.items()}
    return [shorten(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
