"""The web application: containers by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from zarr.buffer import cpu

from n5zarr.store.n5_store import N5Store
from n5zarr.viewing.ome_store import OmeStore
from n5zarr.viewing.serve.opened import Opened
from n5zarr.viewing.serve.page import page_routes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from zarr.abc.store import Store

    from n5zarr.storage.place import Location

__all__ = ["make_app"]


def make_app(
    location: Location,
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
) -> Starlette:
    """Make the application for a container: ``/n5/``, ``/zarr/`` and ``/ome/``."""
    opened = Opened(location, storage_options, labels=labels)
    shown = N5Store(opened.store.storage.store, codecs="portable", zarr_format=3, read_only=True)
    stores = {"n5": opened.store.storage.store, "zarr": shown, "ome": OmeStore(opened.tree())}
    routes = [_route(name, store) for name, store in stores.items()]
    return Starlette(routes=[*routes, *page_routes(location, opened)])


def _route(name: str, store: Store) -> Route:
    async def answer(request: Request) -> Response:
        value = await store.get(request.path_params["key"], cpu.buffer_prototype)
        if value is None:
            return Response(status_code=404)
        return Response(value.to_bytes(), media_type="application/octet-stream")

    return Route(f"/{name}/{{key:path}}", answer, methods=["GET"])
