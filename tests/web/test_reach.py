"""Everybody can use the page: with the keyboard alone, with a screen reader, on any screen."""

import pytest

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe: pip install 'unembed[dev]'")
expect = playwright.expect

SCREENS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "narrow": {"viewport": {"width": 360, "height": 740}},
}


def violations(page) -> list[str]:
    # The test's script is not the page's: its policy allows no other scripts, so axe comes through the debugger.
    found = axe.Axe().run(page).response["violations"]
    return [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("setting", ["", "compare=sequential&defence=noise", "mode=vector"])
def test_axe_finds_nothing_to_complain_about(new_page, address, finished, screen, setting):
    page = new_page(address, **SCREENS[screen])
    page.goto(f"{address}/#{setting}")
    if "vector" in setting:
        page.fill("#vector", "\n".join(" ".join(str(0.1 + row + place) for place in range(16)) for row in range(3)))
        page.press("#vector", "Enter")
        expect(page.locator("#many-state")).to_contain_text("all read.")
    finished(page)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    assert violations(page) == []


def test_the_keyboard_alone_is_enough(new_page, address, finished):
    page = new_page(address)
    page.goto(address)
    finished(page)

    def reach(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"Tab never reaches {selector}")

    page.evaluate("document.activeElement.blur()")
    reach("#text")
    page.keyboard.press("Control+A")
    page.keyboard.type("the dog runs in the park.")
    page.keyboard.press("Enter")
    finished(page)
    expect(page.locator("#results .card").first).to_contain_text("the dog runs")
    reach("#run")
    reach("[name=attacker]")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[name=attacker][value=guided]")).to_be_checked()
    finished(page)
    reach("#details > summary")
    page.keyboard.press("Enter")
    expect(page.locator(".measures")).to_be_visible()
    reach("#lanes")
    page.keyboard.press("Home")
    expect(page.locator("#scrub")).to_have_value("0")
    page.keyboard.press("End")
    reach("#method > summary")
    page.keyboard.press("Enter")
    reach("[name=strategy], [name=compare]")
    reach("#defend > summary")
    reach("[name=model]")


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_overlaps_or_leaves_the_screen(new_page, address, finished, screen):
    page = new_page(address, **SCREENS[screen])
    page.goto(address)
    finished(page)
    width = page.evaluate("document.documentElement.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    boxes = [page.locator(part).bounding_box() for part in ("#field", "#words", "#verdict", "#results", "#lanes")]
    tops = [box["y"] for box in boxes]
    assert tops == sorted(tops), "input, words, headline, texts, then the method"
