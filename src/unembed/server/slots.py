"""What a request wants filled: a template, its candidates, and whether they are within the limits. Fills nothing."""

from dataclasses import dataclass

from unembed.errors import ConfigError
from unembed.filling import GivenCandidates, Template, choose_candidates
from unembed.filling.filler import CALLS
from unembed.filling.kinds import Free
from unembed.server.schemas import FillRequest
from unembed.server.settings import Limits

_FEWER = "Give fewer candidates; see limits in /api/models."


@dataclass(frozen=True, eq=False)
class SlotOptions:
    """How slots are filled."""

    template: str
    candidates: GivenCandidates
    blind: bool
    calls: int
    top: int
    seed: int


def read_slots(request: FillRequest, limits: Limits) -> SlotOptions:
    """Return what is to be filled, or say what is wrong with it."""
    _check_sizes(request, limits)
    template = Template.parse(request.template)
    if len(template.slots) > limits.slots:
        raise ConfigError(
            f"The template has {len(template.slots)} slots; expected at most {limits.slots}.",
            "Fill the likeliest values in yourself, or ask for some of the slots at a time.",
        )
    chosen = choose_candidates(template, request.candidates, most=limits.slot_candidates)
    _check_count(sum(len(own) for own in chosen if not isinstance(own, Free)), limits)
    return SlotOptions(
        template=request.template,
        candidates=request.candidates,
        blind=request.blind,
        calls=min(CALLS, limits.calls) if request.calls is None else request.calls,
        top=request.top,
        seed=request.seed,
    )


def _check_sizes(request: FillRequest, limits: Limits) -> None:
    """Refuse what is too large, before it is looked at."""
    if len(request.template) > limits.text_characters:
        raise ConfigError(
            f"The template has {len(request.template)} characters; expected at most {limits.text_characters}.",
            "Give a shorter template.",
        )
    if request.calls is not None and request.calls > limits.calls:
        raise ConfigError(f"calls is {request.calls}; expected at most {limits.calls}.", "See limits in /api/models.")
    lists = {slot: given for slot, given in request.candidates.items() if not isinstance(given, str)}
    _check_count(sum(map(len, lists.values())), limits)
    for slot, own in lists.items():
        if (longest := max(map(len, own), default=0)) > limits.candidate_characters:
            raise ConfigError(
                f"A candidate for the slot '{slot}' has {longest} characters; expected at most "
                f"{limits.candidate_characters}.",
                "Give shorter candidates, and write what they share into the template.",
            )


def _check_count(count: int, limits: Limits) -> None:
    if count > limits.slot_candidates:
        raise ConfigError(
            f"There are {count} candidates for all slots together; expected at most {limits.slot_candidates}.", _FEWER
        )
