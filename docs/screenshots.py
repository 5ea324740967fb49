"""Takes the pictures of the web page that the documentation shows: light, dark, and on a phone.

Needs a running server (``unembed serve``), Chromium and ``pip install playwright``:

python docs/screenshots.py --address http://127.0.0.1:8080 --setting "example=3"
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

SCREENS = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
}
MINUTES = 60_000


def take(browser: Browser, address: str, screen: str, output: Path) -> None:
    """Open the page on one kind of screen, wait for the result of its first run, and save the whole page."""
    context = browser.new_context(reduced_motion="reduce", **SCREENS[screen])
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#page:not(.busy) .verdict:not(.stale)", timeout=5 * MINUTES)
    page.screenshot(path=output / f"web-{screen}.png", full_page=True)
    context.close()


def main() -> None:
    """Take one picture for each kind of screen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8080", help="where the server is")
    parser.add_argument("--setting", default="", help="what a shared link of the page has behind its #")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="a folder")
    arguments = parser.parse_args()

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for screen in SCREENS:
            take(browser, f"{arguments.address}/#{arguments.setting}", screen, arguments.output)
        browser.close()


if __name__ == "__main__":
    main()
