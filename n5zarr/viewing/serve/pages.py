"""Answer requests for pages about groups and datasets, for pictures, and for Neuroglancer.

Templates beside this module have the text of the pages, also of those of errors. The files of
Neuroglancer, which runs in the browser, are those of its Python package. A Content-Security-Policy
names inline scripts and styles, so that no others run.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from n5zarr.conventions.units import symbol
from n5zarr.errors import N5Error, N5MissingDependencyError, N5UnrepresentableError
from n5zarr.format.order import to_c
from n5zarr.format.path import join
from n5zarr.images.image import Image, is_at, select_images
from n5zarr.metadata import inspect
from n5zarr.metadata.inspect import Described
from n5zarr.store.info import names_of_axes, rows
from n5zarr.store.missing_nodes import not_found
from n5zarr.viewing.neuroglancer import can_show, check_shown, fragment, neuroglancer_state
from n5zarr.viewing.serve.location import ServedLocation
from n5zarr.viewing.serve.views import is_shown
from n5zarr.viewing.snippets import code_for, code_for_image, viewer_links
from n5zarr.viewing.thumbnail import slices_that_fit, thumbnail_png

if TYPE_CHECKING:
    from starlette.requests import Request


def _source_of(text: str) -> str:
    """Return the source expression that allows one inline script or style.

    Examples
    --------
    >>> _source_of("alert(1)")
    "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    """
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


_templates = Environment(
    loader=PackageLoader("n5zarr.viewing.serve"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_folder = files("n5zarr.viewing.serve") / "templates"
_style, _script, _client_script = (
    (_folder / name).read_text("utf-8") for name in ("style.css", "script.js", "neuroglancer.js")
)
_POLICY = (  # nothing runs or is loaded but their own
    f"default-src 'none'; img-src 'self' data:; style-src {_source_of(_style)}; "
    f"script-src {_source_of(_script)}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_CLIENT = "/neuroglancer/v/n5zarr/"  # it starts only if a name of a viewer follows /v/
_CLIENT_POLICY = (
    "default-src 'self' blob: data:; object-src 'none'; base-uri 'none'; "
    f"script-src 'self' blob: 'wasm-unsafe-eval' {_source_of(_client_script)}; "
    "style-src 'self' 'unsafe-inline'; connect-src *"  # users may add layers from anywhere
)
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
        The node, as :func:`n5zarr.metadata.inspect.describe` describes it.
    below : sequence of Described
        Nodes below it, as :func:`n5zarr.metadata.inspect.describe_each` yields them.
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


def _base_name(container: str) -> str:
    """Return the last name in the path or URL of a container."""
    return container.rstrip("/").rpartition("/")[2] or container


def _node_page(page: Page) -> bytes:
    """Write the page of a group or dataset."""
    is_array = page.node["kind"] == "array"
    return _write(
        "node.html",
        page=page,
        name=_base_name(page.container),
        facts=[row for row in rows(page.node) if row[0] not in _NOT_FACTS],
        code=code_for(page.url, page.path, is_array=is_array, left_out=_cannot_open(page.node)),
    )


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


def _axes(node: Mapping[str, Any]) -> str:
    """Return the axes of a dataset in C order, with scale and unit where these are known."""
    if not node.get("geometry"):
        return names_of_axes(node).strip()
    return ", ".join(
        f"{axis['name'] or '?'} {axis['scale']:g} {axis['unit'] or ''}".strip()
        for axis in to_c(node["geometry"]["axes_n5"])
    )


def _spacing(image: Image) -> str:
    """Write, as text, the distance of elements along axes with a unit or a scale other than 1."""
    return ", ".join(
        f"{axis.name} {scale:g} {symbol(axis.unit)[0] if axis.unit else ''}".strip()
        for axis, scale in zip(image.axes, image.levels[0].scale, strict=True)
        if axis.unit or scale != 1
    )


_templates.filters |= {
    "sizes": tuple,
    "axes": _axes,
    "spacing": _spacing,
}
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
_HEADERS = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}


def page_routes(served: ServedLocation) -> list[BaseRoute]:
    """Return the routes of the pages, of the pictures on them, and of Neuroglancer."""
    pages = _Pages(served)
    return [
        Route("/", pages.node, methods=["GET"]),
        Route("/tree/{path:path}", pages.node, methods=["GET"]),
        Route("/view", pages.view, methods=["GET"]),
        Route("/thumbnail/{path:path}.png", pages.thumbnail, methods=["GET"]),
        *(_client_routes() if _has_client() else []),
    ]


def error_page(request: Request, err: Exception) -> Response:
    """Answer with a page that says why another page cannot be shown."""
    is_missing = isinstance(err, FileNotFoundError) or getattr(err, "kind", "") in _NOT_FOUND
    title = "Not found" if is_missing else "This cannot be shown"
    content = _write("failure.html", title=title, message=str(err), home=str(request.base_url))
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
            is_viewable=_has_client(),
        )
        return HTMLResponse(await asyncio.to_thread(_node_page, page), headers=_HEADERS)

    async def view(self, request: Request) -> Response:
        """Redirect to Neuroglancer with a state that shows the wanted images, or the first ones."""
        wanted = request.query_params.getlist("dataset")
        url = str(request.base_url)

        def make_state(images: list[Image]) -> str:
            chosen = select_images(images, wanted)
            check_shown(chosen, str(self._served))
            title = _base_name(str(self._served))
            state = neuroglancer_state(chosen, f"{url}ome", title=title, show_all=bool(wanted))
            return fragment(state)

        state = await asyncio.to_thread(make_state, await self._find_images())
        is_public = "public" in request.query_params
        viewer = _PUBLIC if is_public else f"{url.rstrip('/')}{_CLIENT}"
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


def _has_client() -> bool:
    return find_spec("neuroglancer") is not None


def _client_routes() -> list[BaseRoute]:
    """Return the routes of Neuroglancer's client; it loads nothing from the internet."""
    folder = check_client()
    page = (folder / "index.html").read_text(encoding="utf-8")
    head = f'<head><link rel="icon" href="data:,"><script>{_client_script}</script>'
    page = page.replace("<head>", head, 1)

    async def index(_: Request) -> Response:
        return HTMLResponse(page, headers={"Content-Security-Policy": _CLIENT_POLICY})

    return [
        Route(_CLIENT, index, methods=["GET"]),
        Mount(_CLIENT, StaticFiles(directory=folder)),
    ]
