"""The audit as one call from Python, for any source of vectors. Prints nothing and writes no report."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unembed.auditing.baseline import compare, read_baseline
from unembed.auditing.leaks import LeakDetectors
from unembed.auditing.result import Audit
from unembed.auditing.run import AuditSettings, OnRows, run_audit
from unembed.connectors.memory import vectors_of
from unembed.encoders import Encoder
from unembed.errors import EncoderError, MissingExtraError
from unembed.inverter import Inverter
from unembed.progress import OnProgress


def audit(
    source: Any,
    *,
    texts: Sequence[str | None] | None = None,
    column: str | None = None,
    id_column: str | None = None,
    text_column: str | None = None,
    model: str | Path | Inverter = "default",
    encoder: str | Encoder | None = None,
    size: int | None = 300,
    guided: int = 40,
    minutes: float = 10.0,
    fail_over: float = 0.1,
    show_text: bool = False,
    calibrate: Sequence[str] | None = None,
    detectors: LeakDetectors | None = None,
    baseline: str | Path | None = None,
    seed: int = 0,
    bootstrap: int = 1000,
    device: str = "auto",
    folder: str | Path | None = None,
    on_progress: OnProgress = lambda label, done, total: None,
    on_encoder: Callable[[str], None] = lambda sentence: None,
    on_rows: OnRows = lambda attacker, rows, total: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Audit:
    """Find out how much of its texts a source of vectors gives away. The source is only read.

    Args:
        source: an address such as ``chroma:./db#notes`` or a path, as in ``unembed audit``; an array (n, d); a pandas
            data frame, an Arrow table or a Hugging Face dataset with a column of lists.
        texts: (n,) what the vectors of an array were made from, if that is known. Recovery is then measured, not
            estimated.
        column: the column, field or named vector that holds the vectors, where there are several.
        id_column: the column or field that names each row.
        text_column: the column or field that holds the texts.
        model: an inverter, or its name, folder or hub id.
        encoder: the encoder that made the vectors, or its name or folder. By default the inverter's own, if it is
            installed.
        size: vectors that are drawn at random; None for all.
        guided: of these, vectors that are also inverted with the encoder's help.
        minutes: time limit of guided inversion.
        fail_over: the texts count as exposed when a greater share of them can be read back.
        show_text: show texts and ids in the result; otherwise they are masked.
        calibrate: texts like those that the vectors were made from, for the estimate where no texts are known.
        detectors: what is looked for in texts; by default the built-in kinds of information.
        baseline: a ``report.json`` of an earlier audit, with which the result is compared.
        seed: of the sample and of the intervals.
        bootstrap: resamples behind each interval.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        folder: where finished parts are kept, so that the same call goes on after a crash. By default they are lost.
        on_progress: called with what is being done, how many more vectors are done, and of how many.
        on_encoder: called with what is known about the encoder, as a sentence.
        on_rows: called with the attacker's name, all rows so far, and how many there will be, whenever there are more.
        interrupted: once it says yes, the audit ends with what is done.

    Returns:
        The results. A notebook shows them as a table; :func:`unembed.report.write_report` writes them into a folder.

    Raises:
        UnembedError: the source, the inverter or the encoder cannot be used, with what to do about it.
    """
    earlier = None if baseline is None else read_baseline(baseline)
    vectors = vectors_of(source, texts=texts, column=column, id_column=id_column, text_column=text_column)
    inverter = model if isinstance(model, Inverter) else Inverter.from_pretrained(str(model), device=device)
    settings = AuditSettings(
        size=size,
        guided=guided,
        minutes=minutes,
        fail_over=fail_over,
        seed=seed,
        resamples=bootstrap,
        show_text=show_text,
        detectors=detectors or LeakDetectors(),
    )
    with TemporaryDirectory(prefix="unembed-audit-") as temporary:
        result = run_audit(
            vectors,
            inverter,
            settings,
            encoder=_find_encoder(inverter, encoder, device),
            unfinished=Path(folder or temporary) / "unfinished",
            asked=encoder if isinstance(encoder, str) else encoder.description.name if encoder else None,
            calibration=calibrate,
            command=f"unembed.audit(...) on {vectors.name}",
            on_progress=on_progress,
            on_encoder=on_encoder,
            on_rows=on_rows,
            interrupted=interrupted,
        )
    return result if earlier is None else replace(result, comparison=compare(result, earlier))


def _find_encoder(inverter: Inverter, encoder: str | Encoder | None, device: str) -> Encoder | None:
    """Return the encoder; None if it is not named and not installed."""
    if encoder is not None and not isinstance(encoder, str):
        return encoder
    try:
        return inverter.load_encoder(encoder, device=device)
    except (EncoderError, MissingExtraError):
        if encoder is not None:
            raise
        return None
