"""The start page of the server, the pages of groups and datasets, and the links to viewers."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.path import join
from n5zarr.store import inspect
from n5zarr.store.missing_nodes import not_found
from n5zarr.viewing.images import images_of, is_at, select_images
from n5zarr.viewing.neuroglancer import check_shown, fragment, neuroglancer_state
from n5zarr.viewing.serve.client import CLIENT_PATH, client_routes, has_client
from n5zarr.viewing.serve.node_page import POLICY, Page, base_name, failure_page, node_page
from n5zarr.viewing.serve.views import is_shown
from n5zarr.viewing.thumbnail import slices_that_fit, thumbnail_png

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from n5zarr.storage.place import Location
    from n5zarr.store.inspect import Described
    from n5zarr.viewing.images import Image
    from n5zarr.viewing.serve.opened import Opened

__all__ = ["page_routes"]

_log = logging.getLogger(__name__)
_PUBLIC = "https://neuroglancer-demo.appspot.com/"
_MOST_NODES = 40  # of a group, and of each group in it
_MOST_IMAGES = 24
_PATIENCE = 3  # seconds after which pages no longer wait for the images of the container
_SIZE = 480  # pixels of a picture, twice as many as are seen
_MOST_PICTURES = 200  # that are remembered
_MOST_BLOCKS = 20_000  # that are read for a picture, for which all others wait
_KEPT = {"Cache-Control": "max-age=60"}
_HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}


def page_routes(location: Location, opened: Opened) -> list[BaseRoute]:
    """Return the routes of the pages, of the pictures on them, and of Neuroglancer.

    Parameters
    ----------
    location : path, URL or zarr store
        What the user asked to serve.
    opened : Opened
        The same, opened; reads nothing outside of the container.
    """
    pages = _Pages(opened)
    return [
        Route("/", pages.node, methods=["GET"]),
        Route("/tree/{path:path}", pages.node, methods=["GET"]),
        Route("/view", pages.view, methods=["GET"]),
        Route("/thumbnail/{path:path}.png", pages.thumbnail, methods=["GET"]),
        *(client_routes() if has_client() else []),
    ]


class _Pages:
    """Answer requests for pages of the opened location."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._drawing = asyncio.Lock()
        self._pictures: dict[str, bytes] = {}
        self._looking: asyncio.Task[list[Image]] | None = None
        self._since = 0.0  # when that began

    async def node(self, request: Request) -> Response:
        """Show a group or a dataset."""
        path = request.path_params.get("path", "").strip("/")
        given = request.query_params.get("skip", "")
        skip = int(given) if re.fullmatch("[0-9]{1,9}", given) else 0
        url = str(request.base_url)
        looking = self._look()
        try:
            node, below = await asyncio.to_thread(_described, self._opened, path, skip)
        except (N5Error, OSError) as err:
            return _failure(err, url)
        await asyncio.wait([looking], timeout=max(0.01, self._since + _PATIENCE - time.monotonic()))
        images = None
        if looking.done():
            known = [] if looking.exception() else looking.result()
            images = [image for image in known if is_at(image, path)]
        page = Page(
            container=str(self._opened),
            url=url,
            path=path,
            node=node,
            below=below,
            skip=skip,
            images=None if images is None else images[:_MOST_IMAGES],
            n_images=len(images or ()),
            is_viewable=has_client(),
        )
        return HTMLResponse(await asyncio.to_thread(node_page, page), headers=_HEADERS)

    async def view(self, request: Request) -> Response:
        """Lead to Neuroglancer, with a state that shows some images, or all."""
        wanted = request.query_params.getlist("dataset")
        url = str(request.base_url)

        def make_state(images: list[Image]) -> str:
            chosen = select_images(images, wanted)
            check_shown(chosen, str(self._opened))
            title = base_name(str(self._opened))
            state = neuroglancer_state(chosen, f"{url}ome", title=title, show_all=bool(wanted))
            return fragment(state)

        try:
            state = await asyncio.to_thread(make_state, await self._look())
        except (N5Error, OSError) as err:
            return _failure(err, url)
        is_public = "public" in request.query_params
        viewer = _PUBLIC if is_public else f"{url.rstrip('/')}{CLIENT_PATH}"
        return Response(status_code=303, headers={"Location": f"{viewer}#{state}"})

    async def thumbnail(self, request: Request) -> Response:
        """Draw a small picture of an image."""
        path = request.path_params["path"]
        try:
            images = await self._look()
        except (N5Error, OSError):  # the next request looks again
            return Response(status_code=404)
        found = next((image for image in images if image.path == path), None)
        if found is None or slices_that_fit(found, _SIZE).n_blocks() > _MOST_BLOCKS:
            return Response(status_code=404)
        async with self._drawing:  # each reads and draws for some time
            picture = self._pictures.get(path)
            if picture is None:
                try:
                    picture = await asyncio.to_thread(thumbnail_png, found, size=_SIZE)
                except (N5Error, OSError) as err:
                    _log.info("no picture of %s: %s", path, err)
                    return Response(status_code=404)
                self._pictures[path] = picture
                if len(self._pictures) > _MOST_PICTURES:
                    self._pictures.pop(next(iter(self._pictures)))
        return Response(picture, media_type="image/png", headers=_KEPT)

    def _look(self) -> asyncio.Task[list[Image]]:
        """Look for the images, once: in a large container it takes long."""
        if self._looking is None or (self._looking.done() and self._looking.exception()):
            self._since = time.monotonic()
            self._looking = asyncio.ensure_future(asyncio.to_thread(_images, self._opened))
        return self._looking


def _images(opened: Opened) -> list[Image]:
    try:
        return [image for image in images_of(opened.tree()) if is_shown(image.path)]
    except N5UnrepresentableError as err:
        _log.info("no images: %s", err)
        return []


def _described(opened: Opened, path: str, skip: int) -> tuple[dict[str, Any], list[Described]]:
    """Describe a node, and the first of those below it that come after some."""
    if not is_shown(path):
        raise not_found(opened.store, path)
    store, place = opened.store.reopened(), join(opened.path, path)
    node = inspect.describe(store, place, size=False, limit=_MOST_NODES)
    if node["kind"] == "group" and node["children"] is None:  # the server does not list
        return node, []
    below = inspect.describe_each(
        store, place, depth=2, limit=_MOST_NODES, skip=skip, geometry=True
    )
    next(below)
    return node, list(_shown(below))


def _shown(below: Iterable[Described]) -> Iterator[Described]:
    """Leave out nodes that the views do not show, with all below them."""
    above: list[str] = []
    for each in below:
        above[each.level - 1 :] = [str(each.description.get("name", ""))]
        if is_shown("/".join(above)):
            yield each


def _failure(err: Exception, url: str) -> Response:
    is_missing = isinstance(err, FileNotFoundError) or getattr(err, "kind", "") in (
        "not-found",
        "path",
    )
    title = "Not found" if is_missing else "This cannot be shown"
    content = failure_page(title, str(err), url)
    return HTMLResponse(content, 404 if is_missing else 500, headers=_HEADERS)
