"""The page and its files. The files' path has a hash of their content, so that browsers can keep them for ever."""

import hashlib
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_FOLDER = Path(__file__).parent / "static"


class Page:
    """The page as it is served."""

    def __init__(self) -> None:
        digest = hashlib.sha256()
        for path in sorted(path for path in _FOLDER.rglob("*") if path.is_file()):
            digest.update(path.relative_to(_FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
        self.static_path = f"/static/{digest.hexdigest()[:16]}"
        """Where the files are. The modules import one another relative to it."""
        self.files = _KeptFiles(directory=_FOLDER)
        html = (_FOLDER / "index.html").read_text(encoding="utf-8")
        self.html = html.replace('"static/', f'"{self.static_path[1:]}/')


class _KeptFiles(StaticFiles):
    """Files that never change at their path."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response
