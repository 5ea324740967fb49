"""What a data protection officer asks, answered from the figures of an audit. Gives no legal advice."""

from dataclasses import dataclass

from unembed.auditing import Audit
from unembed.auditing.assumptions import ATTACKERS
from unembed.auditing.leaks import SPECIAL_CATEGORIES
from unembed.measures import percent


@dataclass(frozen=True)
class Answer:
    """A question, and its answer in paragraphs."""

    question: str
    answers: list[str]


def answer(audit: Audit) -> list[Answer]:
    """Answer the usual questions."""
    return [
        Answer("Is this a breach?", _breach(audit)),
        Answer("Whose data is it?", _whose(audit)),
        Answer("What has to be done, and by when?", _deadlines(audit)),
        Answer("How sure is this?", _certainty(audit)),
        Answer("Who could do it, and with what?", _attackers(audit)),
    ]


def _breach(audit: Audit) -> list[str]:
    readable, outcome = audit.verdict.readable, audit.verdict.outcome
    first = (
        "The audit cannot say whether anybody had access to the vectors. As long as they did not leave your control, "
        "there is a risk, and no breach."
    )
    if outcome == "above":
        second = (
            f"If they did, {percent(readable.low)} to {percent(readable.high)} of the texts can be read back in "
            "substance. Where these texts are personal data, treat the loss of the vectors as a disclosure of the "
            "texts (Art. 4(12) GDPR), not as a loss of anonymous numbers."
        )
    elif outcome == "below":
        second = (
            f"If they did, this attacker reads back at most {percent(readable.high)} of the texts in substance, which "
            "is below the threshold of this audit. Single texts can still be exposed, and a stronger attacker reads "
            "more. So personal data in the texts remains a reason to treat it as a breach."
        )
    else:
        second = (
            "If they did, this audit does not settle how many texts are exposed. Until it does, assume that the texts "
            "can be read back."
        )
    return [first, second]


def _whose(audit: Audit) -> list[str]:
    attack = audit.deciding
    given = [leak for leak in attack.leaks if leak.given_back]
    how = "came back word for word" if attack.known else "is shown by recovered texts, true or not"
    said = ", ".join(f"{leak.kind} ({leak.given_back:,} of {attack.n:,} vectors)" for leak in given)
    paragraphs = [
        f"What {how}: {said}."
        if given
        else "None of the kinds of information that were looked for came back. The detectors miss some items.",
    ]
    if special := [leak.kind for leak in given if leak.kind in SPECIAL_CATEGORIES]:
        paragraphs.append(
            f"Among them are special categories of Art. 9 GDPR, if they are said of people: {', '.join(special)}."
        )
    paragraphs.append(
        "Whose they are, the vectors do not say. The ids of the worst examples lead to the records (--show-text shows "
        "them), and unembed words with --probe lists the vectors that seem to be about health, money, credentials or "
        "minors."
    )
    return paragraphs


def _deadlines(audit: Audit) -> list[str]:
    now = (
        "If the vectors left your control: under the GDPR, the supervisory authority has to be told within 72 hours of "
        "becoming aware, unless a risk to people is unlikely (Art. 33). The people themselves have to be told without "
        "undue delay if the risk is high (Art. 34). Every breach is documented (Art. 33(5)). Other laws have other "
        "deadlines."
    )
    otherwise = (
        "If they did not: close the ways to raw vectors now; bring access, encryption, retention and deletion of the "
        "vectors in line with those of the texts; then measure a defence (unembed defend), and audit again."
    )
    if audit.verdict.outcome == "undecided":
        return [now, otherwise, "An audit that is undecided does not stop a deadline."]
    return [now, otherwise]


def _certainty(audit: Audit) -> list[str]:
    attack, figure = audit.deciding, audit.verdict.readable
    how = (
        "Recovered texts were compared with the stored ones."
        if attack.known
        else "The texts are not known, so the share was estimated from known texts whose recoveries look alike."
    )
    return [
        f"{how} The sample has {figure.n:,} of {audit.source.vectors:,} vectors, and the 95% interval is "
        f"{percent(figure.low)} to {percent(figure.high)}.",
        "A high share is proof: anybody can repeat it with this tool. A low share is no proof of safety. How much is "
        "recovered depends on the encoder, the length of the texts and the attacker.",
    ]


def _attackers(audit: Audit) -> list[str]:
    seconds = "; ".join(
        f"{attack.seconds_per_vector:.1f} seconds for each vector ({attack.name})" for attack in audit.attacks
    )
    return [
        *(ATTACKERS[attack.name] for attack in audit.attacks),
        f"It took {seconds}, on the machine of this audit. No other skill is needed than to start a program.",
    ]
