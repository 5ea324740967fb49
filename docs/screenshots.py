"""Takes the pictures of the web page that the documentation shows: light, dark, on a phone, and an animation.

Needs a running server (``unembed serve``), Chromium and ``pip install playwright pillow``:

python docs/screenshots.py --address http://127.0.0.1:8080
"""

import argparse
import io
import shutil
from datetime import datetime, timedelta
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

SCREENS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
}
MINUTES = 60_000
PAUSE = 200
"""Milliseconds between two pictures of the animation."""
LAST = 4_000
"""Milliseconds for which its last picture stays."""
WIDTH, COLOURS = 880, 64


def take(browser: Browser, address: str, screen: str, output: Path) -> None:
    """Open the page on one kind of screen, wait for the result of its first live run, and save what is seen of it."""
    context = browser.new_context(reduced_motion="reduce", **SCREENS[screen])
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#page:not(.busy) .verdict:not(.stale)", timeout=5 * MINUTES)
    wait_for_live(page)
    page.screenshot(path=output / f"web-{screen}.png")
    context.close()


def wait_for_live(page: Page) -> None:
    """Wait until what is shown is no recording."""
    page.wait_for_function(
        "() => !document.querySelector('#origin').textContent.startsWith('Recorded')", timeout=5 * MINUTES
    )


def animate(browser: Browser, address: str, output: Path) -> None:
    """Save the recording that the page opens with, and its live result, as a looping animation.

    The page's clock is moved by hand, so that no picture is missed however slow the machine is.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 840}, color_scheme="light")
    page = context.new_page()
    now = datetime.now()
    page.clock.install(time=now)
    page.clock.pause_at(now + timedelta(seconds=1))
    page.goto(address)
    page.wait_for_selector("#words li")
    pictures, durations, shown = [], [], ""
    while not page.locator("#origin", has_text="live").count():
        text = page.locator("#outcome").inner_text()
        if text != shown:
            shown = text
            pictures.append(shrink(page.screenshot()))
            durations.append(0)
        durations[-1] += PAUSE
        page.clock.run_for(PAUSE)
    wait_for_live(page)
    pictures.append(shrink(page.screenshot()))
    context.close()
    pictures[0].save(
        output / "web.gif",
        save_all=True,
        append_images=pictures[1:],
        duration=[*durations, LAST],
        loop=0,
        optimize=True,
    )


def shrink(picture: bytes) -> Image.Image:
    """Make a picture smaller, in few colours."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    size = (WIDTH, round(image.height * WIDTH / image.width))
    return image.resize(size, Image.Resampling.LANCZOS).quantize(COLOURS, dither=Image.Dither.NONE)


def main() -> None:
    """Take one picture for each kind of screen, and the animation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8080", help="where the server is")
    parser.add_argument("--setting", default="", help="what a shared link of the page has behind its #")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="a folder")
    arguments = parser.parse_args()
    address = f"{arguments.address}/#{arguments.setting}" if arguments.setting else arguments.address

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for screen in SCREENS:
            take(browser, address, screen, arguments.output)
        animate(browser, arguments.address, arguments.output)
        browser.close()


if __name__ == "__main__":
    main()
