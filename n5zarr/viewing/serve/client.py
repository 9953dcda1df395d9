"""Serve the files of Neuroglancer, which runs in the browser, from its Python package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from n5zarr.errors import N5MissingDependencyError
from n5zarr.viewing.serve.policy import source_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

__all__ = ["CLIENT_PATH", "check_client", "client_routes", "has_client"]

CLIENT_PATH = "/neuroglancer/v/n5zarr/"
"""Path of the client: it starts only if a name of a viewer follows ``/v/``."""

# This build would ask a Python server for its state, and say that there is none. Here, the state is
# in the URL.
_SCRIPT = "window.EventSource=class{constructor(){setTimeout(()=>this.onopen())}close(){}};"
_POLICY = (
    "default-src 'self' blob: data:; object-src 'none'; base-uri 'none'; "
    f"script-src 'self' blob: 'wasm-unsafe-eval' {source_of(_SCRIPT)}; "
    "style-src 'self' 'unsafe-inline'; connect-src *"  # users may add layers from anywhere
)


def has_client() -> bool:
    """Whether the package ``neuroglancer`` is installed."""
    return find_spec("neuroglancer") is not None


def check_client() -> Path:
    """Return the folder of Neuroglancer's client.

    Raises
    ------
    N5MissingDependencyError
        The package ``neuroglancer`` is not installed.
    """
    spec = find_spec("neuroglancer")
    if spec is None or spec.origin is None:
        raise N5MissingDependencyError("neuroglancer", "n5zarr view", "view")
    return Path(spec.origin).parent / "static" / "client"


def client_routes() -> list[BaseRoute]:
    """Return the routes of Neuroglancer's client; it loads nothing from the internet.

    Raises
    ------
    N5MissingDependencyError
        The package ``neuroglancer`` is not installed.
    """
    files = check_client()
    page = (files / "index.html").read_text(encoding="utf-8")
    page = page.replace(
        "<head>", f'<head><link rel="icon" href="data:,"><script>{_SCRIPT}</script>', 1
    )

    async def index(_: Request) -> Response:
        return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})

    return [
        Route(CLIENT_PATH, index, methods=["GET"]),
        Mount(CLIENT_PATH, StaticFiles(directory=files)),
    ]
