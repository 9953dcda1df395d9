"""The start page: what is served, and where."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

    from n5zarr.storage.place import Location
    from n5zarr.viewing.serve.opened import Opened

__all__ = ["page_routes"]


def page_routes(location: Location, opened: Opened) -> list[Route]:
    """Return the routes of the start page and of what it shows.

    Parameters
    ----------
    location : path, URL or zarr store
        What the user asked to serve.
    opened : Opened
        The same, opened; reads nothing outside of the container.
    """
    links = "".join(f'<li><a href="{view}/zarr.json">{view}/</a>' for view in ("zarr", "ome"))
    text = f"<!doctype html><title>{escape(str(opened))}</title><ul>{links}</ul>"

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(text)

    return [Route("/", page, methods=["GET"])]
