"""The start page of the server, and the way from it to a viewer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import Route

from n5zarr.viewing.images import images_of, select_images
from n5zarr.viewing.neuroglancer import fragment, neuroglancer_state
from n5zarr.viewing.serve.client import CLIENT_PATH, client_routes, has_client

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from n5zarr.storage.place import Location
    from n5zarr.viewing.serve.opened import Opened

__all__ = ["page_routes"]


def page_routes(location: Location, opened: Opened) -> list[BaseRoute]:
    """Return the routes of the start page and of the viewer."""

    async def view(request: Request) -> Response:
        """Lead to Neuroglancer with the state that shows some images, or all."""

        def make() -> str:
            wanted = request.query_params.getlist("dataset")
            chosen = select_images(images_of(opened.tree()), wanted)
            url = f"{request.base_url}ome"
            state = neuroglancer_state(chosen, url, title=str(opened), show_all=bool(wanted))
            return fragment(state)

        return RedirectResponse(f"{CLIENT_PATH}#{await asyncio.to_thread(make)}", 303)

    return [
        Route("/view", view, methods=["GET"]),
        *(client_routes() if has_client() else []),
    ]
