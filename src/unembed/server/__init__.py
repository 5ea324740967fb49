"""The web demo and HTTP API: inverters behind a queue that batches what waits."""

from unembed.server.app import make_app
from unembed.server.models import ServedModel
from unembed.server.process import Server
from unembed.server.settings import Limits, Settings

__all__ = ["Limits", "ServedModel", "Server", "Settings", "make_app"]
