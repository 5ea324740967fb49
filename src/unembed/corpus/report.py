"""The options of a corpus, and the report on what it became. Knows nothing of how it is made."""

from dataclasses import asdict, dataclass
from typing import Any

from unembed.corpus.mix import Source
from unembed.errors import ConfigError, did_you_mean

MODES = ("passage", "sentence")


@dataclass(frozen=True)
class CorpusOptions:
    """What is kept, and which side it goes to. Lengths are those of the cleaned text."""

    mode: str = "passage"
    min_characters: int = 20
    max_characters: int = 500
    fragment_share: float = 0.0
    question_share: float = 0.0
    validation_share: float = 0.01
    limit: int | None = None
    seed: int = 0
    field: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: an option is out of range, or two contradict each other.
        """
        if self.mode not in MODES:
            raise ConfigError(
                f"There is no mode '{self.mode}': {did_you_mean(self.mode, MODES)}", "Choose another `mode`."
            )
        if not 1 <= self.min_characters <= self.max_characters:
            raise ConfigError(
                f"No text can have from {self.min_characters} to {self.max_characters} characters.",
                "Choose 1 <= `min_characters` <= `max_characters`.",
            )
        for option, share in (("fragment_share", self.fragment_share), ("question_share", self.question_share)):
            if not 0 <= share <= 1:
                raise ConfigError(
                    f"{share:g} is not a share of the texts.", f"Choose 0 <= `{option}` <= 1, such as 0.2."
                )
        if not 0 <= self.validation_share < 1:
            raise ConfigError(
                f"{self.validation_share:g} is not a share of the texts that leaves others to train on.",
                "Choose 0 <= `validation_share` < 1, such as 0.01.",
            )
        if self.limit is not None and self.limit < 1:
            raise ConfigError(
                f"A limit of {self.limit} keeps nothing.", "Choose a `limit` of 1 or more, or leave it out."
            )


@dataclass(frozen=True)
class CorpusReport:
    """What was read, kept (to train or to validate) and dropped, by reason.

    ``read`` counts the texts of the inputs; the other figures count what became of them, sentence by sentence in
    sentence mode.
    """

    inputs: tuple[Source, ...]
    options: CorpusOptions
    read: int
    train: int
    validation: int
    dropped: dict[str, int]

    @property
    def kept(self) -> int:
        """Texts written, on both sides."""
        return self.train + self.validation

    def to_dict(self) -> dict[str, Any]:
        """Return the report as ``corpus.json`` holds it."""
        return asdict(self)
