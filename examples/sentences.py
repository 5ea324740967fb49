"""Writes short private-sounding sentences, one a line: something for the demo to leak. All of them are made up."""

import argparse
import itertools
import random
import sys

WHO = ["anna", "the nurse", "our lawyer", "my brother", "the new manager", "dr. lee", "the landlord", "a customer"]
DID = ["sent", "showed", "forgot to give", "read out", "sold", "promised"]
WHAT = [
    "the blood test results",
    "a letter about the divorce",
    "the salary list",
    "his medical history",
    "the password",
    "a contract for the house",
    "the names of all patients",
    "a complaint about the boss",
]
WHOM = ["to the bank", "to a reporter", "to her sister", "to the police", "to the school", "to an old friend"]
WHEN = ["on monday", "last night", "before the trial", "by mistake", "after lunch", "in march"]


def main() -> None:
    """Write ``--count`` different sentences in an order that the seed decides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sentences = [" ".join(words) + "." for words in itertools.product(WHO, DID, WHAT, WHOM, WHEN)]
    for sentence in random.Random(arguments.seed).sample(sentences, arguments.count):
        sys.stdout.write(sentence + "\n")


if __name__ == "__main__":
    main()
