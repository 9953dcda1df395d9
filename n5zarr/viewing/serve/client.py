"""Serve the files of Neuroglancer, which runs in the browser, from its Python package.

A Content-Security-Policy names inline scripts and styles, so that no others run.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from n5zarr.errors import N5MissingDependencyError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

__all__ = ["CLIENT_PATH", "check_client", "client_routes", "has_client", "source_of"]


def source_of(text: str) -> str:
    """Return the source expression that allows one inline script or style.

    Examples
    --------
    >>> source_of("alert(1)")
    "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    """
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


CLIENT_PATH = "/neuroglancer/v/n5zarr/"
"""Path of the client: it starts only if a name of a viewer follows ``/v/``."""

# This build would ask a Python server for its state, and say that there is none. Here, the state is
# in the URL. A line says how much is loaded: the bars in Neuroglancer's names of layers are thin.
_SCRIPT = """{
window.EventSource = class { constructor() { setTimeout(() => this.onopen()) } close() {} };
const line = document.documentElement.appendChild(document.createElement("div"));
line.id = "loading";
line.role = "status";
line.style = "position: fixed; right: 8px; bottom: 8px; z-index: 99; padding: 4px 8px; "
  + "font: 14px sans-serif; color: white; background: #000c; pointer-events: none";
const show = () => {
  const viewer = window.viewer;
  const shown = (viewer?.layerManager.managedLayers ?? []).filter((each) => each.visible);
  const layers = shown.flatMap((each) => each.layer?.renderLayers ?? []);
  const infos = layers.flatMap((each) => each.layerChunkProgressInfo ?? []);
  const needed = infos.reduce((n, each) => n + each.numVisibleChunksNeeded, 0);
  const loaded = infos.reduce((n, each) => n + each.numVisibleChunksAvailable, 0);
  line.textContent = viewer === undefined ? "Neuroglancer starts"
    : needed ? `${loaded} of ${needed} blocks loaded` : "Neuroglancer reads metadata";
  const sources = shown.flatMap((each) => each.layer?.dataSources ?? []);
  const isBroken = sources.some((each) => each.loadState?.error);  // which Neuroglancer shows
  line.hidden = isBroken ? loaded === needed : viewer?.isReady() ?? false;
  setTimeout(show, 200);
};
show();
}"""
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
