"""Makes pages of the site from files that lie outside this folder, and the reference of the Python interface.

mkdocs runs it (``hooks`` in mkdocs.yml). Nothing is written beside the sources.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/results.md": "benchmarks.md",
}
"""Files that become pages."""
API = {
    "Inverting": ("unembed.inverter.Inverter", "unembed.inverter.Inversion"),
    "Encoders": ("unembed.encoders.load_encoder", "unembed.encoders.Encoder"),
    "Auditing": (
        "unembed.auditing.call.audit",
        "unembed.auditing.result.Audit",
        "unembed.auditing.result.Attack",
        "unembed.auditing.result.Verdict",
        "unembed.auditing.words.WordReader",
        "unembed.auditing.probes.Probe",
        "unembed.report.writing.write_report",
    ),
    "Sources of vectors": (
        "unembed.connectors.uri.open_vectors",
        "unembed.connectors.memory.vectors_of",
        "unembed.connectors.source.VectorSource",
        "unembed.connectors.source.VectorBatch",
        "unembed.connectors.source.StorageInfo",
    ),
    "Errors": ("unembed.errors",),
}
"""What the reference describes, from the docstrings."""
_LINK = re.compile(r"\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=relink(text, Path(name).parent)))
    files.append(File.generated(config, "api.md", content=reference()))
    return files


def on_page_markdown(markdown: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """Point links of the pages in this folder to pages that were made."""
    return relink(markdown, Path("docs"))


def relink(text: str, folder: Path) -> str:
    """Rewrite the links of a page in ``folder`` of the repository; what is no page loses its link."""

    def rewrite(match: re.Match[str]) -> str:
        target, anchor = match["target"], match["anchor"] or ""
        path = (ROOT / folder / target).resolve()
        if not path.exists():
            return match[0]
        inside = path.relative_to(ROOT).as_posix()
        if inside in PAGES:
            return f"]({PAGES[inside]}{anchor})"
        if inside.startswith("docs/") and path.is_file():
            return f"]({inside.removeprefix('docs/')}{anchor})"
        return "](#)" if folder == Path() or target.startswith("..") else match[0]

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(rewrite, part) for part in parts)


def reference() -> str:
    """Return the page that mkdocstrings fills."""
    lines = ["# The Python interface", "", "Made from the docstrings. Everything else may change without notice.", ""]
    for title, names in API.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"::: {name}", "    options:", "      heading_level: 3", ""]
    return "\n".join(lines)
