"""Texts with slots, written for measuring and calibrating ``unembed fill``: templates, candidates, and how they vary.

Templates for calibration and for the report are different ones. Which value stands in a slot is drawn at random.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unembed.filling import Template
from unembed.filling.kinds import Free, candidates_of

_CALIBRATION = {
    "first names": """
Good morning {x}, the meeting has been moved to Thursday afternoon.
{x} called about the broken heating in the kitchen.
Please ask {x} to sign the contract before Friday.
Our new colleague {x} will start in the marketing department on Monday.
Did {x} bring the documents for the tax office?
I met {x} at the station and we had a coffee together.
The doctor told {x} to take the tablets twice a day.
{x} has not paid the rent for two months.
Hello {x}, your ticket number is on its way.
We are happy to inform you that {x} was accepted at the university.
The complaint was filed by {x} against her former employer.
{x} is allergic to nuts, so please change the menu.
My daughter {x} goes to the same school as your son.
The police questioned {x} about the accident on the motorway.
Thank you {x} for helping us with the garden.
A parcel for {x} is waiting at the front desk.
""",
    "cities": """
We are moving to {x} at the end of the summer.
The conference takes place in {x} this year.
Her flight to {x} was cancelled because of the strike.
He has been working as a lawyer in {x} since 2015.
The company will close its office in {x}.
I grew up in a small flat in {x}.
The suspect was last seen near the station in {x}.
Rents in {x} have doubled within ten years.
The patient was treated at a hospital in {x}.
Our best customers live in {x} and its suburbs.
""",
    "amounts": """
The invoice over {x} dollars has not been paid.
She earns {x} euros a month before taxes.
We can offer you {x} pounds for the car.
The damage was estimated at {x} dollars.
He borrowed {x} euros from his brother.
Your account was charged with {x} dollars yesterday.
The budget for the project is {x} euros.
They donated {x} pounds to the hospital.
""",
    "4 digits": """
The code for the front door is {x}.
Your verification number is {x}, do not share it with anyone.
My bank card has the PIN {x}.
Please enter {x} to unlock the phone.
The alarm can be switched off with {x}.
Room {x} is on the third floor.
His employee number is {x}.
Take the parcel with the pickup code {x}.
""",
    "a name and a city": """
{x} lives in {y} with two children.
{x} was born in {y} and studied law.
I am writing on behalf of {x} from {y}.
Please send the keys to {x} in {y}.
{x} missed the last train to {y}.
The nurse told us that {x} had been taken to a clinic in {y}.
""",
}
_REPORT = {
    "first names": """
Dear {x}, thank you for your order.
{x} was diagnosed with diabetes last spring.
Please forward this message to {x} in accounting.
The contract was signed by {x} on behalf of the landlord.
Happy birthday {x}, we wish you all the best!
{x} resigned yesterday after an argument with the manager.
Can you tell {x} that the car is ready to be picked up?
The teacher praised {x} for an excellent essay.
{x} owes me some money and does not answer the phone.
Last night {x} dreamt of a house by the sea.
Your appointment with {x} is confirmed for next week.
According to the report, {x} left the building at midnight.
My neighbour {x} feeds the cat when we are on holiday.
The scholarship was awarded to {x}, a student of physics.
Hi {x}, the password for the guest network has changed.
I think {x} is looking for a new job.
The judge ordered {x} to pay a fine.
{x} and the rest of the team will present the results.
We regret to inform you that {x} passed away peacefully.
Nobody knew that {x} had been married twice.
The keys were handed over to {x} this morning.
Please remind {x} of the dentist tomorrow.
{x} wrote a long letter to the newspaper.
The insurance refused to cover the surgery of {x}.
Tell {x} to bring warm clothes for the trip.
""",
    "cities": """
The patient was born in {x}.
Our headquarters will move to {x} next year.
The train to {x} leaves at noon.
She inherited a house in {x} from her aunt.
A fire destroyed a warehouse in {x} on Sunday.
He was arrested at the airport of {x}.
The wedding will be celebrated in {x}.
The best pizza I ever had was in {x}.
The data centre in {x} was offline for three hours.
We spent our honeymoon in {x}.
""",
    "amounts": """
Your refund of {x} dollars has been approved.
The salary for this position is {x} euros per year.
He lost {x} pounds at the casino.
The repair of the roof will cost {x} dollars.
A fine of {x} euros must be paid within two weeks.
She sold the painting for {x} dollars.
The loan amounts to {x} euros.
They raised {x} pounds for charity.
""",
    "4 digits": """
The PIN of your card is {x}.
Your confirmation code is {x}.
The combination of the safe is {x}.
Use {x} to log in to the meeting.
The last digits of my phone number are {x}.
Please quote the reference {x} in your reply.
The flight has the number {x}.
Enter {x} at the gate and park behind the house.
""",
    "a name and a city": """
{x} moved to {y} in order to study medicine.
The car belongs to {x}, who lives in {y}.
Yesterday I phoned {x} at the hotel in {y}.
{x} has opened a small bakery in {y}.
The letter from {x} was posted in {y}.
My cousin {x} works for a bank in {y}.
""",
    "an amount and a date": """
We transferred {x} euros to your account on {y}.
The bill of {x} dollars was paid on {y}.
On {y} she withdrew {x} pounds from the bank.
The deposit of {x} euros will be returned on {y}.
""",
}
KINDS = {
    "first names": ("first-names",),
    "cities": ("cities",),
    "amounts": ("amounts",),
    "4 digits": ("digits:4",),
    "a name and a city": ("first-names", "cities"),
    "an amount and a date": ("amounts", "dates"),
}
"""What stands in the slots of each set of templates."""


def templates(what: str, *, calibration: bool) -> list[str]:
    """Return the templates of a set."""
    return (_CALIBRATION if calibration else _REPORT)[what].strip().splitlines()


def _listed(kind: str) -> list[str]:
    candidates = candidates_of(kind)
    assert not isinstance(candidates, Free)
    return list(candidates)


def _drop_end(words: list[str]) -> list[str]:
    return words[:-1] if "{" not in words[-1] else _drop_article(words)


def _drop_article(words: list[str]) -> list[str]:
    place = next((place for place, word in enumerate(words) if word.lower() in ("the", "a", "an", "to", "of")), None)
    return words if place is None else words[:place] + words[place + 1 :]


def _swap(words: list[str]) -> list[str]:
    place = max(place for place in range(len(words) - 1) if "{" not in words[place] + words[place + 1])
    return [*words[:place], words[place + 1], words[place], *words[place + 2 :]]


_MISTAKES: tuple[Callable[[list[str]], list[str]], ...] = (
    _drop_end,
    _drop_article,
    _swap,
    lambda words: [*words, "Thank", "you."],
    lambda words: ["However,", *words],
)


def with_mistake(template: str, random: np.random.Generator) -> str:
    """Return a template with a word lost, added or at the wrong place: what is known is not always exact."""
    return " ".join(_MISTAKES[random.integers(len(_MISTAKES))](template.split()))


@dataclass(frozen=True)
class Case:
    """A text, and what an attacker knows about it."""

    what: str
    known: str
    """The template that the attacker has."""
    values: tuple[str, ...]
    """What really stands in the slots."""
    text: str
    """The text that was embedded."""
    candidates: tuple[Sequence[str], ...]
    listed: bool
    """Whether the values are among the candidates."""


def make_cases(
    what: str,
    random: np.random.Generator,
    *,
    calibration: bool,
    listed: int,
    unlisted: int = 0,
    sizes: Sequence[int] | None = None,
    mistaken: bool = False,
    most: int | None = None,
) -> list[Case]:
    """Draw values for each template of a set; the texts of a template share their candidates.

    Args:
        what: the set.
        random: draws values, lists and mistakes.
        calibration: which templates.
        listed: texts for each of them whose values are among the candidates.
        unlisted: texts for each of them whose values are not.
        sizes: candidates per slot, one of these numbers, drawn from the whole list; by default all.
        mistaken: whether the attacker's template has a mistake.
        most: templates that are used, the first ones; by default all.
    """
    cases = []
    for template in templates(what, calibration=calibration)[:most]:
        lists = [_listed(kind) for kind in KINDS[what]]
        orders = [random.permutation(len(own)) for own in lists]
        size = len(max(lists, key=len)) if sizes is None else int(random.choice(sizes))
        given = tuple(
            [own[each] for each in np.sort(order[unlisted : unlisted + max(size, listed)])]
            for own, order in zip(lists, orders, strict=True)
        )
        known = with_mistake(template, random) if mistaken else template
        for number in range(unlisted + listed):
            values = tuple(own[order[number]] for own, order in zip(lists, orders, strict=True))
            text = Template.parse(template).fill(values)
            cases.append(Case(what, known, values, text, given, listed=number >= unlisted))
    return cases
