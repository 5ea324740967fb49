"""Precision and recall of the audit's leak detectors, on the labelled lines of ``tests/data/leaks.txt``.

Run: ``python benchmarks/leaks.py``. It prints the table of docs/leaks.md. ``--errors`` lists what is wrong.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from unembed.auditing.leaks import KINDS, Leak, find_leaks
from unembed.auditing.leaks.scoring import LabelledLine, Score, leak_matches, score

LINES = Path(__file__).parents[1] / "tests" / "data" / "leaks.txt"
TUNED_ON = 2
"""Errors are listed for every second line by default; docs/leaks.md says what was seen of the others."""


def load_labelled(path: Path = LINES) -> list[LabelledLine]:
    """Read the labelled lines."""
    return [LabelledLine.parse(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def as_recovered(line: LabelledLine) -> LabelledLine:
    """Return a line as the default inverter's tokenizer writes it back: lower case, spaces around punctuation."""
    from tokenizers import Tokenizer

    from unembed.hub import fetch_checkpoint

    tokenizer = Tokenizer.from_file(str(fetch_checkpoint("default") / "tokenizer.json"))

    def back(text: str) -> str:
        return str(tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids))

    return LabelledLine(back(line.text), [Leak(leak.kind, back(leak.text)) for leak in line.leaks])


def without_extra(text: str) -> list[Leak]:
    """Find leaks as if the extra were not installed."""
    with (
        patch("unembed.auditing.leaks.names.has_model", return_value=False),
        patch("unembed.auditing.leaks.phones._has_phonenumbers", return_value=False),
    ):
        return find_leaks(text)


def main() -> None:
    """Print the table, or the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--errors", action="store_true", help="list what is missed and what is wrong")
    parser.add_argument("--all", action="store_true", help="with --errors: also in the other half of the lines")
    options = parser.parse_args()
    lines = load_labelled()
    if options.errors:
        chosen = lines if options.all else lines[::TUNED_ON]
        _show_errors("with the extra", chosen, find_leaks)
        _show_errors("without it", chosen, without_extra)
        _show_errors("as recovered", list(map(as_recovered, chosen)), find_leaks)
        return
    other_half = [line for index, line in enumerate(lines) if index % TUNED_ON]
    columns = {
        "with the extra": score(lines, find_leaks, KINDS),
        "without it": score(lines, without_extra, KINDS),
        "as recovered": score(map(as_recovered, lines), find_leaks, KINDS),
        "other half": score(other_half, find_leaks, KINDS),
    }
    empty = sum(not line.leaks for line in lines)
    print(f"{len(lines)} lines, {empty} of them without any item. Precision / recall:\n")
    print(f"| kind | items | {' | '.join(columns)} |")
    print(f"|---|---|{'---|' * len(columns)}")
    for kind in KINDS:
        cells = [_show(scores[kind]) for scores in columns.values()]
        print(f"| {kind} | {columns['with the extra'][kind].labelled} | {' | '.join(cells)} |")
    cells = [_show(_total(scores)) for scores in columns.values()]
    print(f"| all | {_total(columns['with the extra']).labelled} | {' | '.join(cells)} |")


def _show(result: Score) -> str:
    return f"{result.precision:.2f} / {result.recall:.2f}"


def _total(scores: dict[str, Score]) -> Score:
    values = list(scores.values())
    return Score(
        sum(result.labelled for result in values),
        sum(result.found for result in values),
        sum(result.right for result in values),
        sum(result.recalled for result in values),
    )


def _show_errors(title: str, lines: list[LabelledLine], find: Callable[[str], list[Leak]]) -> None:
    print(f"# {title}")
    for line in lines:
        items = find(line.text)
        missed = [leak for leak in line.leaks if not any(map(leak_matches(leak), items))]
        wrong = [leak for leak in items if not any(map(leak_matches(leak), line.leaks))]
        if missed or wrong:
            print(f"{line.text}\n    missed {[(leak.kind, leak.text) for leak in missed]}")
            print(f"    wrong {[(leak.kind, leak.text) for leak in wrong]}")


if __name__ == "__main__":
    main()
