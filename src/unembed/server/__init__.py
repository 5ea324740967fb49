"""The web demo and HTTP API: inverters behind a queue that batches what waits."""

from unembed.server.app import make_app
from unembed.server.models import ServedModel
from unembed.server.settings import Limits, Settings

__all__ = ["Limits", "ServedModel", "Settings", "make_app"]
