"""The whole way with the real MiniLM encoder: text -> vectors -> training -> the text again, from its vector alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from unembed import Inverter
from unembed.config import Recipe, parse
from unembed.store import Store, embed_texts
from unembed.training import train
from unembed.training.batches import BatchPlan

SENTENCES = [
    "The patient was given 20 milligrams of the new drug.",
    "Meet me at the old station at seven.",
    "Our lawyer advises against signing this contract.",
    "She sold the house in March.",
    "The password is written on the back of the card.",
    "He lost his job last week, and nobody knows.",
    "Transfer the money before Friday!",
    "My sister's phone number has changed.",
    "Do not tell the manager about the results.",
    "Two engineers left the company.",
]


def unembed(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "unembed", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_handful_of_sentences_is_recovered_exactly_from_their_vectors_alone(minilm, tmp_path):
    for split in ("train", "validation"):
        embed_texts(lambda: iter(SENTENCES), tmp_path / "store" / split, minilm)
    recipe = parse(
        Recipe,
        {
            "data": {"store": tmp_path / "store", "validation_rows": len(SENTENCES)},
            "model": {"layers": 2, "width": 128, "heads": 4, "feedforward": 512, "readout": {"kind": "linear"}},
            "noise": {"masking": "count"},
            "training": {
                "output": tmp_path / "run",
                "steps": 300,
                "batch_size": 4,
                "learning_rate": 2e-3,
                "warmup_steps": 20,
                "ema_decay": 0.95,
                "validate_every": 300,
                "sampled_softmax": 256,
                "frequent_tokens": 256,
            },
        },
        "test",
    )
    outcome = train(recipe, device="cpu")
    assert outcome.metrics["exact_match"] == 1.0
    inverter = Inverter.from_pretrained(tmp_path / "run" / "best")
    vectors = minilm.encode(SENTENCES)
    recovered = [inversion.text for inversion in inverter.invert(vectors)]
    assert recovered == [minilm.tokenizer.decode(minilm.tokenizer.encode(text).ids) for text in SENTENCES]
    # Only the direction of a vector speaks.
    assert [inversion.text for inversion in inverter.invert(3.0 * vectors)] == recovered


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline")
    script = Path(__file__).parents[2] / "examples" / "sentences.py"
    text = subprocess.run([sys.executable, script, "--count", "150"], capture_output=True, text=True, check=True).stdout
    (folder / "sentences.txt").write_text(text)
    unembed("prepare", "sentences.txt", "-o", "corpus", "--validation-share", "0.1", cwd=folder)
    unembed("embed", "corpus", "-o", "store", cwd=folder)
    return folder


def short_recipe(folder, steps, processes=1):
    recipe = yaml.safe_load((Path(__file__).parents[2] / "configs" / "tiny.yaml").read_text())
    recipe["data"]["store"] = str(folder / "store")
    recipe["training"] |= {"steps": steps, "warmup_steps": 2, "validate_every": steps, "log_every": 1}
    recipe["training"]["batch_size"] = 16 // processes
    path = folder / f"short-{steps}-{processes}.yaml"
    path.write_text(yaml.safe_dump(recipe))
    return path


def test_the_command_line_goes_from_text_to_an_inverter_that_loads(corpus):
    recipe = short_recipe(corpus, steps=6)
    stopped = json.loads(unembed("train", recipe, "-o", "run", "--max-minutes", "0", "--json", cwd=corpus))
    assert (stopped["ended"], stopped["step"]) == ("time", 1)
    done = json.loads(unembed("train", recipe, "-o", "run", "--resume", "--json", cwd=corpus))
    assert (done["ended"], done["step"]) == ("finished", 6)
    answer = json.loads(unembed("invert", "Anna sent the password.", "-m", "run/latest", "--json", cwd=corpus))
    assert answer["original"] == "Anna sent the password."
    assert answer["tokens"]


def test_two_processes_train_together_and_leave_one_inverter(corpus):
    recipe = short_recipe(corpus, steps=4, processes=2)
    # On CPUs accelerate leaves the launching to torchrun, whose environment it reads just as its own launcher's.
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    launch += ["-m", "unembed", "train", str(recipe), "-o", "pair", "--device", "cpu", "--json"]
    done = subprocess.run(launch, cwd=corpus, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["step"] == 4  # one process speaks
    metrics = [json.loads(line) for line in (corpus / "pair" / "metrics.jsonl").read_text().splitlines()]
    steps = [event for event in metrics if event["kind"] == "train"]
    assert [event["step"] for event in steps] == [1, 2, 3, 4]
    plan = BatchPlan(Store(corpus / "store" / "train").lengths, batch_size=8, seed=0, one_length=True)
    assert steps[-1]["samples"] == sum(len(plan.rows(number)) for number in range(4 * 2))  # of both processes
    assert Inverter.from_pretrained(corpus / "pair" / "best").info.metrics["step"] == 4
