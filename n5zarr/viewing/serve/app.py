"""The web application: containers by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from zarr.buffer import cpu

from n5zarr.store.location import open_container
from n5zarr.store.n5_store import N5Store
from n5zarr.viewing.images import open_tree
from n5zarr.viewing.ome_store import OmeStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from zarr.abc.store import Store

    from n5zarr.storage.place import Location

__all__ = ["make_app"]


def make_app(
    location: Location, *, storage_options: Mapping[str, object] | None = None
) -> Starlette:
    """Make the application for a container: ``/n5/``, ``/zarr/`` and ``/ome/``."""
    opened, _ = open_container(location, storage_options=storage_options, read_only=True)
    shown = N5Store(opened.storage.store, codecs="portable", zarr_format=3, read_only=True)
    stores = {
        "n5": opened.store,
        "zarr": shown,
        "ome": OmeStore(open_tree(location, storage_options=storage_options)),
    }
    return Starlette(routes=[_route(name, store) for name, store in stores.items()])


def _route(name: str, store: Store) -> Route:
    async def answer(request: Request) -> Response:
        value = await store.get(request.path_params["key"], cpu.buffer_prototype)
        if value is None:
            return Response(status_code=404)
        return Response(value.to_bytes(), media_type="application/octet-stream")

    return Route(f"/{name}/{{key:path}}", answer, methods=["GET"])
