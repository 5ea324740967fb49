"""What goes in and out over HTTP. Plain data: the OpenAPI description is made from it."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, field_validator, model_validator

from unembed.config import SEARCHES, Strategy
from unembed.defences import Defence, Kind
from unembed.filling.certainty import Verdict
from unembed.measures import Fate, Format
from unembed.server.settings import Limits

# A lower temperature would divide by almost nothing; 0 is the likeliest token by definition.
_LOWEST_TEMPERATURE = 0.01

# Lists fail at their first mistake: a list of a million mistakes would otherwise be answered with a million errors.
Vector = Annotated[list[FiniteFloat], Field(fail_fast=True, min_length=1, description="The numbers of an embedding.")]
Text = Annotated[str, Field(min_length=1, description="A text to embed; what a canvas cannot hold is cut off.")]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class _Out(BaseModel):
    model_config = ConfigDict(frozen=True, protected_namespaces=())


class ChooseModel(_In):
    """Which inverter, and what is done to the vector before."""

    model: str | None = Field(default=None, max_length=200, description="A name of /api/models; by default the first.")
    defence: Defence | None = Field(default=None, description="What is done to the vector before it is inverted.")


class DecodingOptions(ChooseModel):
    """How vectors are decoded. What is left out takes its default, as in ``unembed invert``."""

    strategy: Strategy = Field(default="confidence", description="Of these, only ``guided`` asks the encoder.")
    steps: int | None = Field(default=None, ge=1, description="Largest number of passes.")
    candidates: int | None = Field(default=None, ge=1, description="Hypotheses per vector; the best is kept.")
    length: int | None = Field(default=None, ge=1, description="Tokens of the text, where that is known.")
    guidance: float | None = Field(default=None, ge=0.0, le=10.0, description="Strength of classifier-free guidance.")
    temperature: float | None = Field(
        default=None, ge=0.0, le=5.0, description="Of the strategies that sample: 0, or at least 0.01."
    )
    seed: int | None = Field(default=None, ge=0, lt=2**32, description="The same seed gives the same text.")
    rounds: int | None = Field(default=None, ge=0, description="Largest number of rounds of a search.")

    @field_validator("temperature")
    @classmethod
    def _not_almost_zero(cls, value: float | None) -> float | None:
        if value is not None and 0.0 < value < _LOWEST_TEMPERATURE:
            raise ValueError(f"expected 0, or at least {_LOWEST_TEMPERATURE}")
        return value

    @model_validator(mode="after")
    def _rounds_are_for_searches(self) -> Self:
        if self.rounds is not None and self.strategy not in SEARCHES:
            raise ValueError("rounds is for the strategies surrogate and guided; expected steps instead")
        return self


class InvertRequest(DecodingOptions):
    """One text or one vector to invert."""

    text: Text | None = None
    vector: Vector | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.text is None) == (self.vector is None):
            raise ValueError("expected exactly one of text and vector")
        return self


class BatchRequest(DecodingOptions):
    """Several texts or several vectors to invert, all in the same way."""

    texts: Annotated[list[Text], Field(fail_fast=True, min_length=1)] | None = None
    vectors: Annotated[list[Vector], Field(fail_fast=True, min_length=1)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.texts is None) == (self.vectors is None):
            raise ValueError("expected exactly one of texts and vectors")
        return self


class FillRequest(ChooseModel):
    """A text with slots, and the vector of the whole text. Meanings and defaults as in ``unembed fill``."""

    template: str = Field(
        min_length=1,
        description="The text with slots: ``Dear {name}, your PIN is {pin:digits:4}``. ``{{`` stands for a brace.",
    )
    text: str | None = Field(
        default=None, min_length=1, description="The whole text, which is embedded as it is: to try it."
    )
    vector: Vector | None = None
    candidates: dict[str, str | Annotated[list[str], Field(fail_fast=True)]] = Field(
        default_factory=dict,
        description="By slot: a kind (``cities``, ``digits:4``, ``free:2``) or a list of texts. A slot without any has "
        "the kind that the template or its name says, or else is free: the denoiser writes what may stand there.",
    )
    blind: bool = Field(default=False, description="Whether to do without the encoder, which is less certain.")
    top: int = Field(default=5, ge=1, le=16, description="Answers.")
    calls: int | None = Field(default=None, ge=1, description="Largest number of texts that are embedded.")
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of the candidates that are tried at random.")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.text is None) == (self.vector is None):
            raise ValueError("expected exactly one of text and vector")
        return self


class WordsRequest(ChooseModel):
    """Vectors whose words are wanted, and nothing else."""

    vectors: Annotated[list[Vector], Field(fail_fast=True, min_length=1)]


class StopRequest(_In):
    """A search that should end with its best text."""

    id: str = Field(max_length=100, description="From the event ``start``.")


class EncodeRequest(ChooseModel):
    """A text to embed."""

    text: Text


class Histogram(_Out):
    """How many numbers of a vector lie between two edges; one edge more than counts."""

    edges: list[float]
    counts: list[int]


class Statistics(_Out):
    """What can be seen of a vector at a glance."""

    dimension: int
    norm: float
    minimum: float
    maximum: float
    mean: float
    entropy: float = Field(description="Of the histogram, in bits.")
    histogram: Histogram


class ShownWord(_Out):
    """A word, and what became of it."""

    text: str
    fate: Fate | None = Field(
        description="same: in both texts; near: another form of it is; lost: it is not. Null if the text is not known."
    )


class Baseline(_Out):
    """What the same model writes without the vector: its favourite text of the same number of tokens."""

    text: str
    found: int = Field(description="Content words of the original that it has, near ones counted.")


class NamedLeak(_Out):
    """Something that the recovered text says about somebody, as the original does."""

    kind: str = Field(description="As in an audit, for example ``medical terms``.")
    name: str = Field(description="One item of it in words, for example ``a name``.")
    text: str


class Headline(_Out):
    """What came back, in content words: function words come back from any vector."""

    words: list[ShownWord] = Field(description="The different content words of the original.")
    same: int = Field(description="How many came back as they were.")
    near: int = Field(description="How many came back in another form.")
    without_vector: Baseline
    leaks: list[NamedLeak]


class Reliability(_Out):
    """How far a recovered text can be trusted, without a look at the original."""

    level: Literal["close", "rough", "noise", "unknown"]
    meaning: str = Field(description="The level in a sentence.")
    reason: str = Field(description="What it was decided by, in a sentence.")


class Encoded(_Out):
    """A text's vector."""

    vector: list[float] = Field(description="After the defence, if there is one.")
    statistics: Statistics
    tokens: list[str] = Field(description="The tokens that were embedded.")
    cut: bool = Field(description="Whether the text was longer than the inverter's canvas, and cut.")


class Reference(_Out):
    """The text that was embedded."""

    text: str
    tokens: list[str]
    cut: bool = Field(description="Whether the text given was longer than the inverter's canvas, and cut.")
    notices: list[str] = Field(description="What about it this inverter cannot read: its length, its language.")


class RecoveredToken(_Out):
    """A token, and its probability when it was revealed."""

    text: str
    confidence: float


class Result(_Out):
    """What was read out of a vector."""

    text: str
    tokens: list[RecoveredToken]
    strategy: Strategy
    passes: int = Field(description="Passes of the denoiser over canvases of this text.")
    milliseconds: float = Field(description="Computing time of the batch until this text was complete.")
    waited_milliseconds: float = Field(description="From the arrival until the first pass.")
    score: float = Field(description="The model's own score; when guided, the cosine with the vector inverted.")
    cosine: float | None = Field(
        description="Of the recovered text's vector with the vector before its defence; null without the encoder."
    )
    encoder_calls: int = Field(description="Texts that the encoder embedded on the way.")
    surrogate_calls: int = Field(description="Texts that its surrogate embedded on the way.")
    words: list[ShownWord] = Field(description="That the vector gives away by the readout alone, the surest first.")
    headline: Headline | None = Field(description="For texts only.")
    reliability: Reliability
    reference: Reference | None = Field(description="For texts only.")
    measures: dict[str, float] | None = Field(
        description="How much of the embedded text was recovered, by the names in /api/models. For texts only."
    )
    statistics: Statistics = Field(description="Of the vector that was inverted.")
    warnings: list[str] = Field(description="Why the text may mean nothing: say, another encoder made the vector.")
    notices: list[str] = Field(description="What to know about the text: say, that it is longer than the model writes.")
    model: str


class BatchResult(_Out):
    """A result for each text or vector, in their order."""

    results: list[Result]


class FillAnswer(_Out):
    """One way to fill the slots."""

    values: dict[str, str] = Field(description="What stands in each slot.")
    text: str = Field(description="The filled template.")
    probability: float = Field(description="That all slots are right, as calibrated on known texts.")
    cosine: float | None = Field(
        description="Of the filled template's vector with the vector after its defence. When blind, by the inverter's "
        "stand-in for the encoder; null if it has none."
    )
    likelihood: float | None = Field(
        description="The denoiser's log-probability of the values; null where the encoder was asked."
    )


class FillResult(_Out):
    """What stands in the slots, and how sure that is."""

    answers: list[FillAnswer] = Field(description="Best first.")
    verdict: Verdict = Field(description="The best answer's probability in words.")
    absent: float = Field(description="Probability that none of the candidates is right.")
    candidates: int = Field(description="How many ways to fill the slots there were.")
    encoder_calls: int = Field(description="Texts that the encoder embedded.")
    surrogate_calls: int = Field(description="Texts that its surrogate embedded.")
    milliseconds: float = Field(description="Computing time.")
    waited_milliseconds: float = Field(description="From the arrival until the work began.")
    warnings: list[str] = Field(description="Why this may mean nothing: say, another encoder made the vector.")
    model: str


class WordsOfVector(_Out):
    """What one vector gives away at a glance."""

    words: list[str] = Field(description="The surest first.")
    warnings: list[str] = Field(description="Why they may mean nothing.")


class WordsResult(_Out):
    """The words of each vector, in their order."""

    results: list[WordsOfVector]


class Stopped(_Out):
    """Whether there was such a search. It ends with the event ``done`` of its own stream."""

    stopped: bool


class Queued(_Out):
    """Event ``queued``: it waits for its turn."""

    position: int = Field(description="1 for the next in the queue.")
    seconds: int | None = Field(description="Estimated time until its turn; null when nothing like it was decoded yet.")


class Start(_Out):
    """Event ``start``: the vector is there, decoding is next."""

    id: str = Field(description="With which a search can be stopped.")
    model: str
    words: list[ShownWord] = Field(description="That the vector gives away by the readout alone, the surest first.")
    length: int | None = Field(description="Tokens that the text will have; null when several lengths are tried.")
    statistics: Statistics
    vector: list[float] = Field(description="As it is inverted: after the defence.")
    reference: Reference | None


class CanvasToken(_Out):
    """One position of a canvas."""

    text: str = Field(description="What it says, without marks of the tokenizer. Empty while it is masked.")
    joined: bool = Field(description="Whether it continues the word before it.")
    masked: bool
    changed: bool = Field(description="Whether this pass changed it.")
    confidence: float


class StepShown(_Out):
    """Event ``step``: a canvas after a pass, or the best text after a round of guided search."""

    model_config = ConfigDict(serialize_by_alias=True)

    number: int = Field(serialization_alias="pass")
    mask_rate: float
    score: float | None = Field(description="As in the result; null while positions are masked.")
    texts_embedded: int = Field(description="So far, by the encoder or by its surrogate.")
    tokens: list[CanvasToken]


class Problem(_Out):
    """What went wrong, and what to do about it."""

    message: str
    remedy: str


class StreamProblem(Problem):
    """Event ``error``: the answer that the request would have got if it had not been a stream."""

    status: int


class ModelDescription(_Out):
    """An inverter that can be asked."""

    name: str
    identity: str = Field(description="Another trained inverter has another one.")
    encoder: str = Field(description="Whose vectors it reads.")
    languages: list[str] = Field(description="That it writes; empty if unknown.")
    lower_case: bool = Field(description="Whether it writes small letters only, as its encoder reads them.")
    dimension: int
    canvas_length: int = Field(description="Tokens that a text can have at most.")
    strategies: list[Strategy]
    guided: bool = Field(description="Whether the encoder is available: for texts, cosines and ``guided``.")
    parameters: int
    default: bool
    metrics: dict[str, float] = Field(description="Measured during training, on held-out rows.")


class DefenceDescription(_Out):
    """A defence, and what its strength means."""

    kind: Kind
    label: str
    explanation: str
    low: float = Field(description="The parameter at strength 0.")
    high: float = Field(description="The parameter at strength 1.")
    unit: str
    neighbours: list[float] = Field(
        description="Share of the ten nearest neighbours that a search still finds, at equal steps from strength 0 to "
        "1; measured with all-MiniLM-L6-v2."
    )
    naive: list[float] = Field(
        description="Share of the content words that a blind attacker reads, at equal steps from strength 0 to 1; "
        "measured with the default inverter."
    )
    adaptive: list[float] = Field(description="As naive, by an attacker who knows the defence and adapts to it.")


class MeasureDescription(_Out):
    """A measure, and how it is shown."""

    name: str
    label: str
    meaning: str
    format: Format
    hit: bool = Field(description="Whether a text has it or not: 1 or 0.")


class ModelList(_Out):
    """All that can be asked of this server."""

    models: list[ModelDescription]
    defences: list[DefenceDescription]
    measures: list[MeasureDescription]
    limits: Limits


class Example(_Out):
    """A sentence to try."""

    text: str
    difficulty: Literal["easy", "hard"]
    content_f1: float = Field(description="Of its content words, read back blind by the default inverter.")
    words: float = Field(description="Share of its content words among the words that its vector gives away.")


class ExampleList(_Out):
    """Sentences to try."""

    examples: list[Example]


class QueueState(_Out):
    """How busy the server is, in vectors."""

    running: int
    waiting: int
    capacity: int
    workers: int


class Health(_Out):
    """That the server answers."""

    status: Literal["ok"]
    version: str
    models: list[str]
