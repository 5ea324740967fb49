"""An audit as a small HTML table, for notebooks. The whole report is made elsewhere."""

import re
from html import escape

from unembed.auditing.result import Audit
from unembed.auditing.verdict import explain, headline
from unembed.measures import BY_NAME

SHOWN = ("readable", "passage_recall", "content_precision", "exact_match")
"""The measures that a summary names."""
_PARAMETER = re.compile(r"`([^`]+)`")


def summarise(audit: Audit) -> dict[str, dict[str, str | int]]:
    """Return a row for each attacker: its n, and the chief measures with their intervals."""
    rows: dict[str, dict[str, str | int]] = {}
    for attack in audit.attacks:
        row: dict[str, str | int] = {"n": attack.n}
        for name in SHOWN:
            figure, measure = attack.figures[name], BY_NAME[name]
            row[measure.plain] = (
                f"{measure.show(figure.value)} ({measure.show(figure.low)} to {measure.show(figure.high)})"
            )
        rows[f"{attack.name}, {'measured' if attack.known else 'estimated'}"] = row
    return rows


def to_html(audit: Audit) -> str:
    """Return the verdict, the chief measures of each attacker, and what was given back; loads and runs nothing."""
    rows = summarise(audit)
    heads = "".join(f"<th>{escape(name)}</th>" for name in ["", *next(iter(rows.values()))])
    body = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(str(value))}</td>' for value in row.values())}</tr>"
        for name, row in rows.items()
    )
    sentences = (_PARAMETER.sub(r"<code>\1</code>", escape(reason)) for reason in explain(audit))
    reasons = "".join(f"<p>{sentence}</p>" for sentence in sentences)
    given = ", ".join(f"{leak.kind} ({leak.given_back:,})" for leak in audit.deciding.leaks if leak.given_back)
    how = "Given back word for word" if audit.deciding.known else "Shown by recovered texts, true or not"
    leaks = f"<p>{how}: {escape(given)}.</p>" if given else ""
    return (
        f"<div><p><b>{escape(headline(audit))}</b><br>{escape(audit.source.name)}: {audit.source.vectors:,} vectors, "
        f"encoder {escape(audit.encoder.name)}</p>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{reasons}{leaks}</div>"
    )
