"""The site of the documentation: it builds without a warning, and asks no other host for anything."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"(https?:)?//|<link[^>]*stylesheet[^>]*href=\"(https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_the_documentation_is_there(site):
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} | {"index", "api", "changelog", "benchmarks"}
    assert pages <= {path.stem for path in site.glob("*.html")}


def test_every_page_of_the_documentation_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    linked = set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= linked


def test_the_reference_is_made_of_the_docstrings(site):
    said = (site / "api.html").read_text()
    assert "Find out how much of its texts a source of vectors gives away" in said
    assert "Open a source of vectors for reading" in said


def test_links_to_the_readme_and_from_it_lead_to_pages(site):
    assert 'href="audit.html"' in (site / "index.html").read_text()
    assert 'href="benchmarks.html' in (site / "speed.html").read_text() + (site / "index.html").read_text()


def test_no_page_loads_anything_from_another_host(site):
    assert not [path.name for path in site.rglob("*.html") if _LOADED.search(path.read_text())]
    assert not [path.name for path in site.rglob("*.css") if re.search(r"url\(\"?https?:|@import", path.read_text())]


@pytest.mark.parametrize("name", ["index", "api", "stores"])
def test_a_browser_asks_no_other_host(site, browser, name):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_timeout(300)
    page.close()
    assert asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
