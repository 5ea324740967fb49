"""Decides whether the texts count as exposed, and says so. A verdict needs an interval that excludes the threshold."""

from collections.abc import Sequence

from unembed.auditing.intervals import wilson
from unembed.auditing.result import Attack, Audit, Verdict
from unembed.measures import percent

_MOST = 100_000


def judge(attacks: Sequence[Attack], threshold: float) -> Verdict:
    """Decide by the attackers that were tried.

    The texts are exposed if one attacker reads back more than the threshold for sure. They are below it if every
    attacker reads back less for sure, counting the texts that the method cannot see as readable. Otherwise it is
    undecided.
    """
    exposing = [attack for attack in attacks if attack.figures["readable"].low > threshold]
    open_ = [attack for attack in attacks if attack.figures["not_cleared"].high > threshold]
    if exposing:
        outcome, decisive = "above", max(exposing, key=lambda attack: attack.figures["readable"].low)
    elif open_:
        outcome, decisive = "undecided", max(open_, key=lambda attack: attack.figures["not_cleared"].low)
    else:
        outcome, decisive = "below", max(attacks, key=lambda attack: attack.figures["readable"].value)
    return Verdict(
        outcome=outcome,  # type: ignore[arg-type]
        attacker=decisive.name,
        readable=decisive.figures["readable"],
        not_cleared=decisive.figures["not_cleared"],
        threshold=threshold,
        enough=_enough(decisive, threshold) if outcome == "undecided" and decisive.known else None,
    )


def _enough(attack: Attack, threshold: float) -> int | None:
    """Return how many vectors decide it, if their shares stay as they are; None if no number does."""
    readable, not_cleared = attack.figures["readable"].value, attack.figures["not_cleared"].value
    n = attack.n
    while n < _MOST:
        n = n + n // 8 + 1
        if wilson(readable * n, n).low > threshold or wilson(not_cleared * n, n).high <= threshold:
            return n
    return None


WORDS = {
    "above": "Above the threshold: the texts are exposed",
    "below": "Below the threshold",
    "undecided": "Undecided",
}


def headline(audit: Audit) -> str:
    """Return the verdict in a few words; where the method cannot see the texts, this says so."""
    verdict, unseen = audit.verdict, audit.deciding.figures["unseen"].value
    if verdict.outcome != "undecided":
        return WORDS[verdict.outcome]
    if verdict.readable.high <= verdict.threshold:
        return f"No verdict: the method cannot see {percent(unseen)} of the texts"
    if verdict.not_cleared.low > verdict.threshold:
        return f"Undecided: the method cannot see {percent(unseen)} of the texts"
    return "Undecided: too few vectors for a verdict" if audit.deciding.known else "Undecided: the estimate is too wide"


def explain(audit: Audit) -> list[str]:
    """Return the figures behind the verdict as sentences, the same on the page and in the terminal."""
    verdict, attack = audit.verdict, audit.deciding
    how = "Measured" if attack.known else "Estimated" if attack.name == "blind" else "Estimated, at least"
    readable = verdict.readable
    sentences = [
        f"{how}: {percent(readable.value)} of the texts can be read back in substance (95% interval "
        f"{percent(readable.low)} to {percent(readable.high)}, n = {readable.n:,}, {attack.name} attacker). "
        f"The threshold of this audit is {percent(verdict.threshold)}."
    ]
    reasons = []
    if long := attack.figures["too_long"].value:
        reasons.append(f"{percent(long)} are longer than the {audit.canvas_length} tokens that this inverter writes")
    if foreign := attack.figures["other_language"].value:
        its = f"its {audit.languages[0]}" if len(audit.languages) == 1 else "those that it writes"
        reasons.append(f"{percent(foreign)} are in another language than {its}")
    if reasons:
        seem = "" if attack.known else ", by the look of their vectors"
        sentences.append(
            f"Of the texts, {' and '.join(reasons)}{seem}. Of these the method sees a part at most: what it reads "
            "back counts, but they are never cleared."
        )
    if verdict.outcome == "undecided":
        sentences.append(_remedy(audit))
    return sentences


def _remedy(audit: Audit) -> str:
    verdict, attack = audit.verdict, audit.deciding
    if verdict.not_cleared.low > verdict.threshold:
        return "More vectors will not decide it; an inverter for longer texts or for this language would."
    if not attack.known:
        return "A database that holds its texts, or `calibrate` with texts like yours, makes the interval narrower."
    wanted = "size" if attack.name == "blind" else "guided"
    if verdict.enough is None or (attack.name == "blind" and attack.n >= audit.source.vectors):
        return "The share lies too near the threshold for the number of vectors that there are."
    return f"About {verdict.enough:,} vectors would decide it: `{wanted}={verdict.enough}`."
