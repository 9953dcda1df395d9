"""Answer requests for pages about groups and datasets, for pictures, and for the viewer.

Templates beside this module have the text of the pages, also of those of errors.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from n5zarr.conventions.units import symbol
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.path import join
from n5zarr.images.image import is_at, select_images
from n5zarr.store import inspect
from n5zarr.store.info import names_of_axes, rows
from n5zarr.store.missing_nodes import not_found
from n5zarr.viewing.neuroglancer import can_show, check_shown, fragment, neuroglancer_state
from n5zarr.viewing.serve.client import CLIENT_PATH, client_routes, has_client, source_of
from n5zarr.viewing.serve.views import is_shown
from n5zarr.viewing.snippets import code_for, code_for_image, viewer_links
from n5zarr.viewing.thumbnail import slices_that_fit, thumbnail_png

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from n5zarr.images.image import Image
    from n5zarr.store.inspect import Described
    from n5zarr.viewing.serve.location import ServedLocation

__all__ = ["POLICY", "Page", "base_name", "error_page", "failure_page", "node_page", "page_routes"]

_templates = Environment(
    loader=PackageLoader("n5zarr.viewing.serve"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_folder = files("n5zarr.viewing.serve") / "templates"
_style, _script = (_folder.joinpath(name).read_text("utf-8") for name in ("style.css", "script.js"))
POLICY = (
    f"default-src 'none'; img-src 'self' data:; style-src {source_of(_style)}; "
    f"script-src {source_of(_script)}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""The Content-Security-Policy of the pages: nothing runs or is loaded but their own."""

_NOT_FACTS = {"kind", "children", "by kind"}  # which the rest of the page says


@dataclass(frozen=True, kw_only=True)
class Page:
    """What the page of a group or dataset shows.

    Parameters
    ----------
    container : str
        The path or URL of what is served.
    url : str
        Address of the server, with a slash at the end.
    path : str
        Path of the node below the served location; ``""`` is the location itself.
    node : dict
        The node, as :func:`n5zarr.store.inspect.describe` describes it.
    below : sequence of Described
        Nodes below it, as :func:`n5zarr.store.inspect.describe_each` yields them.
    skip : int
        How many nodes directly below it come before these.
    images : sequence of Image or None
        The first images in it; None while the server looks for them.
    n_images : int
        How many images are in it.
    is_viewable : bool
        Whether this server has Neuroglancer.
    """

    container: str
    url: str
    path: str
    node: dict[str, Any]
    below: Sequence[Described]
    skip: int = 0
    images: Sequence[Image] | None = None
    n_images: int = 0
    is_viewable: bool = True

    def href(self, path: str, skip: int = 0) -> str:
        """Return the address of the page of a node, without the first nodes below it."""
        query = f"?skip={skip}" if skip else ""
        return f"{self.url}tree/{quote(path)}{query}" if path or query else self.url

    def rows(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        """Yield level, description and path of each row of the table of nodes below.

        The path of a row that counts further nodes is that of their group.
        """
        above = [self.path]
        for level, _, node in self.below:
            if node["kind"] != "more":
                above[level:] = [join(above[level - 1], str(node["name"]))]
                yield level, node, above[level]
            elif level > 1:
                yield level, node, above[level - 1]

    def next_nodes(self) -> tuple[int, int]:
        """Return how many nodes directly below come before the next page, and after this one."""
        direct: list[dict[str, Any]] = [node for level, _, node in self.below if level == 1]
        n_more = sum(node["n_more"] for node in direct if node["kind"] == "more")
        return self.skip + sum(node["kind"] != "more" for node in direct), n_more


def base_name(container: str) -> str:
    """Return the last name in the path or URL of a container."""
    return container.rstrip("/").rpartition("/")[2] or container


def node_page(page: Page) -> bytes:
    """Write the page of a group or dataset."""
    is_array = page.node["kind"] == "array"
    return _write(
        "node.html",
        page=page,
        name=base_name(page.container),
        facts=[row for row in rows(page.node) if row[0] not in _NOT_FACTS],
        code=code_for(page.url, page.path, is_array=is_array, left_out=_cannot_open(page.node)),
    )


def failure_page(title: str, message: str, home: str) -> bytes:
    """Write the page of an error."""
    return _write("failure.html", title=title, message=message, home=home)


def _write(template: str, **content: object) -> bytes:
    text = _templates.get_template(template).render(content)
    return text.encode("utf-8", "replace")  # names of files may be no text


def _cannot_open(node: Mapping[str, Any]) -> set[str]:
    """Return the libraries that cannot open a node from this server."""
    if node["kind"] == "array":
        is_of_one_size = "n_bytes" in node
        return set() if is_of_one_size else {"tensorstore"}  # which knows no strings
    # over HTTP only a document tells that a group is there, and Java writes none without attributes
    is_described = node["attributes"] or (node["path"] == "/" and node["n5"] is not None)
    return set() if is_described else {"n5zarr"}


def _sizes(values: Iterable[int]) -> str:
    return str(tuple(values))


def _axes(node: Mapping[str, Any]) -> str:
    """Return the axes of a dataset in C order, with scale and unit where these are known."""
    if not node.get("geometry"):
        return names_of_axes(node).strip()
    return ", ".join(
        f"{axis['name'] or '?'} {axis['scale']:g} {axis['unit'] or ''}".strip()
        for axis in reversed(node["geometry"]["axes_n5"])
    )


def _spacing(image: Image) -> str:
    """Write, as text, the distance of elements along axes with a unit or a scale other than 1."""
    return ", ".join(
        f"{axis.name} {scale:g} {symbol(axis.unit)[0] if axis.unit else ''}".strip()
        for axis, scale in zip(image.axes, image.levels[0].scale, strict=True)
        if axis.unit or scale != 1
    )


_templates.filters |= {"sizes": _sizes, "axes": _axes, "spacing": _spacing}
_templates.tests["shown_by_neuroglancer"] = can_show
_templates.globals |= {
    "code_for_image": code_for_image,
    "viewer_links": viewer_links,
    "style": _style,
    "script": _script,
}


_log = logging.getLogger(__name__)
_PUBLIC = "https://neuroglancer-demo.appspot.com/"
_MOST_NODES = 40  # on a page, of a group and of each group in it
_MOST_IMAGES = 24  # on a page
_PATIENCE = 3  # seconds for which pages wait while the server looks for images
_SIZE = 480  # pixels of a picture; pages show it at half this size
_MOST_PICTURES = 200  # in memory
_MOST_BLOCKS = 20_000  # read for a picture; other pictures wait meanwhile
_NOT_FOUND = ("not-found", "path")  # kinds of errors
_KEPT = {"Cache-Control": "max-age=60"}
_HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}


def page_routes(served: ServedLocation) -> list[BaseRoute]:
    """Return the routes of the pages, of the pictures on them, and of Neuroglancer."""
    pages = _Pages(served)
    return [
        Route("/", pages.node, methods=["GET"]),
        Route("/tree/{path:path}", pages.node, methods=["GET"]),
        Route("/view", pages.view, methods=["GET"]),
        Route("/thumbnail/{path:path}.png", pages.thumbnail, methods=["GET"]),
        *(client_routes() if has_client() else []),
    ]


def error_page(request: Request, err: Exception) -> Response:
    """Answer with a page that says why another page cannot be shown."""
    is_missing = isinstance(err, FileNotFoundError) or getattr(err, "kind", "") in _NOT_FOUND
    title = "Not found" if is_missing else "This cannot be shown"
    content = failure_page(title, str(err), str(request.base_url))
    return HTMLResponse(content, 404 if is_missing else 500, headers=_HEADERS)


class _Pages:
    """Answer requests for pages of the served location."""

    def __init__(self, served: ServedLocation) -> None:
        self._served = served
        self._drawing = asyncio.Lock()
        self._draw = lru_cache(_MOST_PICTURES)(partial(thumbnail_png, size=_SIZE))
        self._search: asyncio.Task[list[Image]] | None = None
        self._search_start = 0.0

    async def node(self, request: Request) -> Response:
        """Show a group or a dataset."""
        path = request.path_params.get("path", "").strip("/")
        given = request.query_params.get("skip", "")
        skip = int(given) if re.fullmatch("[0-9]{1,9}", given) else 0
        search = self._find_images()
        node, below = await asyncio.to_thread(_describe, self._served, path, skip)
        left = self._search_start + _PATIENCE - time.monotonic()
        await asyncio.wait([search], timeout=max(0.01, left))
        images = None
        if search.done():
            found = [] if search.exception() else search.result()
            images = [image for image in found if is_at(image, path)]
        page = Page(
            container=str(self._served),
            url=str(request.base_url),
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
        """Redirect to Neuroglancer with a state that shows the wanted images, or the first ones."""
        wanted = request.query_params.getlist("dataset")
        url = str(request.base_url)

        def make_state(images: list[Image]) -> str:
            chosen = select_images(images, wanted)
            check_shown(chosen, str(self._served))
            title = base_name(str(self._served))
            state = neuroglancer_state(chosen, f"{url}ome", title=title, show_all=bool(wanted))
            return fragment(state)

        state = await asyncio.to_thread(make_state, await self._find_images())
        is_public = "public" in request.query_params
        viewer = _PUBLIC if is_public else f"{url.rstrip('/')}{CLIENT_PATH}"
        return Response(status_code=303, headers={"Location": f"{viewer}#{state}"})

    async def thumbnail(self, request: Request) -> Response:
        """Draw a small picture of an image."""
        path = request.path_params["path"]
        try:
            picture = await self._picture(path)
        except (N5Error, OSError) as err:
            _log.info("no picture of %s: %s", path, err)
            picture = None
        if picture is None:
            return Response(status_code=404)
        return Response(picture, media_type="image/png", headers=_KEPT)

    async def _picture(self, path: str) -> bytes | None:
        """Return the picture of an image; None if there is no such image, or it is too large."""
        images = await self._find_images()
        image = next((image for image in images if image.path == path), None)
        if image is None or slices_that_fit(image, _SIZE).n_blocks() > _MOST_BLOCKS:
            return None
        async with self._drawing:  # one after the other: each reads and computes for some time
            return await asyncio.to_thread(self._draw, image)

    def _find_images(self) -> asyncio.Task[list[Image]]:
        """Return the search for the images; it takes long in a large container, so it runs once."""
        if self._search is None or (self._search.done() and self._search.exception()):
            self._search_start = time.monotonic()
            self._search = asyncio.ensure_future(asyncio.to_thread(_images, self._served))
        return self._search


def _images(served: ServedLocation) -> list[Image]:
    try:
        return [image for image in served.images().with_elements() if is_shown(image.path)]
    except N5UnrepresentableError as err:
        _log.info("no images: %s", err)
        return []


def _describe(
    served: ServedLocation, path: str, skip: int
) -> tuple[dict[str, Any], list[Described]]:
    """Describe a node, and some of the nodes below it, without the first ``skip`` of its children.

    There are no nodes below it if the server of a remote container does not list them.
    """
    if not is_shown(path):
        raise not_found(served.store, path)
    store, place = served.store.reopened(), join(served.path, path)
    node = inspect.describe(store, place, size=False, limit=_MOST_NODES)
    if node["kind"] == "group" and node["children"] is None:
        return node, []
    walk = inspect.describe_each(store, place, depth=2, limit=_MOST_NODES, skip=skip, geometry=True)
    next(walk)  # the node itself
    return node, list(_shown(walk))


def _shown(below: Iterable[Described]) -> Iterator[Described]:
    """Leave out nodes that the views do not show, with all nodes below them."""
    names: list[str] = []
    for each in below:
        names[each.level - 1 :] = [str(each.description.get("name", ""))]
        if is_shown("/".join(names)):
            yield each
