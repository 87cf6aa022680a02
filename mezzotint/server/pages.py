"""The playground's page and what it loads, as bytes of the package; what they do in a browser lives in web."""

from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from mezzotint.server.errors import ApiError

# Nothing from elsewhere, nothing written into the page itself, and no other page may frame it.
POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-cache",  # asked again each time, answered with 304 where nothing has changed
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_PAGE = "index.html"


class Asset(NamedTuple):
    """One file. etag: its fingerprint, quoted as HTTP has it."""

    content: bytes
    media_type: str
    etag: str


def read_assets() -> dict[str, Asset]:
    """Every file of the playground, by its name."""
    folder = files("mezzotint") / "web"
    found = ((file.name, file.read_bytes()) for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES)
    return {
        name: Asset(content, _TYPES[name.rpartition(".")[2]], f'"{sha256(content).hexdigest()[:32]}"')
        for name, content in found
    }


def make_pages() -> APIRouter:
    """GET / and GET /assets/NAME; the files are read once."""
    router, assets = APIRouter(include_in_schema=False), read_assets()

    @router.get("/")
    async def page(request: Request) -> Response:
        """The playground."""
        return _answer(assets[_PAGE], request)

    @router.get("/assets/{name}")
    async def asset(name: str, request: Request) -> Response:
        """What it loads."""
        if name not in assets or name == _PAGE:
            raise ApiError(404, f"the page has no asset {name!r}; it starts at /", kind="not_found_error")
        return _answer(assets[name], request)

    return router


def _answer(asset: Asset, request: Request) -> Response:
    headers = {**_HEADERS, "etag": asset.etag}
    if asset.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers={**headers, "content-type": asset.media_type})
