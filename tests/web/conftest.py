"""A real server with a tiny inverter, and a real browser that fails a test on any console error or foreign request."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from unembed.checkpoint import CheckpointInfo
from unembed.config import ModelRecipe, NoiseConfig
from unembed.inverter import Inverter
from unembed.store import Store
from unembed.training.compatibility import build_for_store

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'unembed[dev]'")
pytest.importorskip("uvicorn", reason="needs the server: pip install 'unembed[serve]'")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")  # its driver keeps an event loop running, which other tests must not find
def browser():
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def inverter(tiny_store_master: Path) -> Inverter:
    """Knows nothing, but what it says depends on the vector."""
    store = Store(tiny_store_master / "train")
    torch.manual_seed(0)
    config = ModelRecipe(layers=1, width=16, heads=2, feedforward=32)
    model = build_for_store(config, store.manifest)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    info = CheckpointInfo.for_store(store.manifest, model.config, NoiseConfig())
    return Inverter(model, store.tokenizer(), info)


@pytest.fixture(scope="session")
def encoder(build_fake_encoder):
    return build_fake_encoder()


@pytest.fixture(scope="session")
def serve(inverter: Inverter, encoder) -> Iterator[Callable[..., str]]:
    """Starts servers of the tiny inverter on free ports, and returns their addresses."""
    from servers import running
    from unembed.server.app import make_app
    from unembed.server.models import ServedModel
    from unembed.server.settings import Settings

    with ExitStack() as stack:

        def serve(encoder=encoder, **settings) -> str:
            app = make_app(Settings(workers=1, **settings), [ServedModel("tiny", inverter, encoder)])
            return stack.enter_context(running(app))[1]

        yield serve


@pytest.fixture(scope="session")
def address(serve) -> str:
    return serve()


@pytest.fixture(scope="session")
def default_address() -> Iterator[str]:
    """A server of the inverter that comes with the package."""
    from servers import running
    from unembed.server.app import make_app
    from unembed.server.models import ServedModel
    from unembed.server.settings import Settings

    inverter = Inverter.default()
    with running(make_app(Settings(workers=1), [ServedModel("default", inverter, inverter.load_encoder())])) as served:
        yield served[1]


@pytest.fixture
def new_page(browser):
    """Opens pages of any kind of screen; in the end, all of them must have kept to themselves and to our server.

    They do not move unless a test is about motion: that would only cost time.
    """
    contexts, complaints = [], []

    def new_page(address: str, **options):
        usual = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
        context = browser.new_context(**usual | options)
        context.set_default_timeout(10_000)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
        page.on("request", lambda request: complaints.append(request.url) if is_foreign(request, address) else None)
        page.on("response", lambda response: complaints.append(response.url) if is_missing(response) else None)
        return page

    yield new_page
    for context in contexts:
        context.close()
    assert complaints == []


def is_complaint(message) -> bool:
    # Chromium itself reports every answer that is not a success; those of the page's own files are looked at below.
    return message.type in ("error", "warning") and not message.text.startswith("Failed to load resource")


def is_foreign(request, address: str) -> bool:
    return not request.url.startswith((f"{address}/", "data:", "blob:"))


def is_missing(response) -> bool:
    return response.status >= 400 and "/api/" not in response.url


@pytest.fixture
def page(new_page, address, finished):
    """The page as it is after loading: an example has been run, and its result is shown."""
    page = new_page(address)
    page.goto(address)
    finished(page)
    return page


@pytest.fixture
def finished():
    """Waits until the result of the last run is shown."""

    def finished(page) -> None:
        page.wait_for_selector("#page:not(.busy) .verdict:not(.stale)", state="attached")

    return finished
