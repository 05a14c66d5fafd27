"""The live map at `/`: files that `make web` built, and what to do where it was not run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aiohttp import web

from contrada.client.gateway.http.guard import SECURITY_HEADERS

FOLDER: Final = Path(__file__).parents[1] / "page"
_FILES: Final = {
    "index.html": "text/html",
    "map.js": "text/javascript",
    "painter.js": "text/javascript",
    "map.css": "text/css",
    "LICENSES.txt": "text/plain",
}
_ABSENT: Final = (
    "The gateway's API is here (/v1/openapi.json, /v1/asyncapi.json, docs/gateway.md). The live map is not:\n"
    "it was not built into this installation. In a clone, `make web` builds it; then start the gateway again.\n"
)


def routes() -> list[web.RouteDef]:
    """The routes of the page's files, or of the note that there are none."""
    if not (FOLDER / "index.html").is_file():
        return [web.get("/", _absent)]
    served = [web.get(f"/{name}", _file) for name in _FILES if (FOLDER / name).is_file()]
    return [web.get("/", _file), *served]


async def _file(request: web.Request) -> web.StreamResponse:
    name = request.path.lstrip("/") or "index.html"
    headers = {"Content-Type": f"{_FILES[name]}; charset=utf-8", "Cache-Control": "no-cache", **SECURITY_HEADERS}
    return web.FileResponse(FOLDER / name, headers=headers)


async def _absent(request: web.Request) -> web.Response:
    return web.Response(text=_ABSENT, status=404)
