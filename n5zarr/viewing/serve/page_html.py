"""Write the start page, and that of each group and dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from n5zarr.conventions.units import symbol
from n5zarr.format.path import join
from n5zarr.store.info import names_of_axes, rows
from n5zarr.viewing.neuroglancer import can_show
from n5zarr.viewing.serve.html import content_hash, element, written
from n5zarr.viewing.serve.page_style import SCRIPT, STYLE
from n5zarr.viewing.snippets import code_for, code_for_image, viewer_links

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from n5zarr.images.image import Image
    from n5zarr.store.inspect import Described
    from n5zarr.viewing.serve.html import Content

__all__ = ["POLICY", "Page", "base_name", "failure_page", "node_page"]

POLICY = (
    f"default-src 'none'; img-src 'self' data:; style-src {content_hash(STYLE)}; "
    f"script-src {content_hash(SCRIPT)}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""The Content-Security-Policy of the pages: nothing runs or is loaded but their own."""

_NOT_FACTS = {"kind", "children", "by kind"}  # which the rest of the page says
_COLUMNS = ("name", "shape", "data type", "blocks", "compression", "axes")


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page shows.

    Parameters
    ----------
    container : str
        What is served: the path or URL that was given.
    url : str
        Address of the server, with a slash at the end.
    path : str
        The node, below the served location.
    node : dict
        The node, as :func:`n5zarr.store.inspect.describe` describes it.
    below : sequence of Described
        Nodes below it, as :func:`n5zarr.store.inspect.describe_each` yields them.
    skip : int
        How many nodes directly below it come before these.
    images : sequence of Image or None
        The first images in it; None while they are being looked for.
    n_images : int
        How many there are.
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


def base_name(container: str) -> str:
    """Return the last name in the path or URL of a container."""
    return container.rstrip("/").rpartition("/")[2] or container


def node_page(page: Page) -> bytes:
    """Write the page of a group or dataset."""
    name = base_name(page.container)
    shown = f"{name}: {page.path}" if page.path else name
    is_array = page.node["kind"] == "array"
    return _document(
        shown,
        element("h1", name),
        element("p", page.container, class_="path mono"),
        _crumbs(page, name) if page.path else None,
        _facts(page),
        _images(page),
        None if is_array else _tree(page),
        element("h2", "Open it in Python"),
        _snippets(
            code_for(page.url, page.path, is_array=is_array, left_out=_cannot_open(page.node))
        ),
        None if page.path else _addresses(page),
    )


def failure_page(title: str, message: str, home: str) -> bytes:
    """Write the page of an error."""
    back = element("p", element("a", "to the start page", href=home))
    return _document(title, element("h1", title), element("p", message), back)


def _document(title: str, *content: Content) -> bytes:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", STYLE),
    )
    return written(
        element("html", head, element("body", content, element("script", SCRIPT)), lang="en")
    )


def _href(page: Page, path: str, skip: int = 0) -> str:
    query = f"?{urlencode({'skip': skip})}" if skip else ""
    return f"{page.url}tree/{quote(path)}{query}" if path or query else page.url


def _crumbs(page: Page, name: str) -> Element:
    names = page.path.split("/")
    above = [(name, "")] + [(each, "/".join(names[: i + 1])) for i, each in enumerate(names)]
    links = [
        (element("a", each, href=_href(page, path)), " / ") if path != page.path else each
        for each, path in above
    ]
    return element("p", links)


def _facts(page: Page) -> Element:
    facts = [(name, text) for name, text in rows(page.node) if name not in _NOT_FACTS]
    return element("dl", [(element("dt", name), element("dd", text)) for name, text in facts])


def _images(page: Page) -> list[Element]:
    if page.images is None:
        text = "The images are still being looked for. Load the page again to see them."
        return [element("h2", "Images"), element("p", text, class_="dim")]
    if not page.images:
        return []
    title = element("h2", f"Images ({page.n_images})" if page.n_images > 1 else "Image")
    shown = {"dataset": page.path} if page.path else {}
    every = element("a", "View together", href=f"{page.url}view?{urlencode(shown)}", class_="view")
    cards = element("div", [_card(page, image) for image in page.images], class_="images")
    n_more = page.n_images - len(page.images)
    more = f"{n_more} more: open the groups below to see theirs." if n_more else ""
    is_useful = page.is_viewable and sum(map(can_show, page.images)) > 1
    together = [element("p", every)] if is_useful else []
    return [title, *together, cards, *([element("p", more, class_="dim")] if more else [])]


def _card(page: Page, image: Image) -> Element:
    finest = image.levels[0]
    url = f"{page.url}ome/{quote(image.path)}".rstrip("/")
    facts = [
        f"{_tuple(finest.shape)} {', '.join(axis.name for axis in image.axes)}; {finest.dtype}",
        _spacing(image),
        f"{len(image.levels)} levels" if len(image.levels) > 1 else "",
        ", ".join(channel.name for channel in image.channels if channel.name),
        "labels" if image.is_labels else "",
    ]
    return element(
        "div",
        element(
            "img",
            alt="no picture",
            loading="lazy",
            src=f"{page.url}thumbnail/{quote(image.path)}.png",
        ),
        element("h3", image.name),
        element("p", image.path, class_="path mono") if image.path != image.name else None,
        [element("p", fact, class_="dim") for fact in facts if fact],
        _own_viewer(page, image),
        element(
            "details",
            element("summary", "Other viewers, code"),
            _other_viewers(page, image, url),
            _snippets(code_for_image(url, finest.path.removeprefix(image.path).strip("/"))),
        ),
        class_="card",
    )


def _own_viewer(page: Page, image: Image) -> Element:
    if not page.is_viewable:
        return element("p", "pip install 'n5zarr[view]' adds Neuroglancer", class_="dim")
    if not can_show(image):
        return element("p", f"Neuroglancer does not know {image.dtype}", class_="dim")
    query = urlencode({"dataset": image.path})
    return element("p", element("a", "View", href=f"{page.url}view?{query}", class_="view"))


def _other_viewers(page: Page, image: Image, url: str) -> list[Element]:
    links = dict(viewer_links(url))
    if can_show(image):
        query = urlencode({"dataset": image.path, "public": "1"})
        links = {"Neuroglancer": f"{page.url}view?{query}"} | links
    shown = [
        (", " if i else "", element("a", name, href=href, rel="noreferrer", target="_blank"))
        for i, (name, href) in enumerate(links.items())
    ]
    note = "They need the internet, and a browser that lets pages of https read this server."
    return [element("p", shown), element("p", note, class_="dim")]


def _spacing(image: Image) -> str:
    """Return the distance of elements along each axis that has a unit or another size than 1."""
    finest = image.levels[0]
    known = [
        f"{axis.name} {scale:g} {symbol(axis.unit)[0] if axis.unit else ''}".strip()
        for axis, scale in zip(image.axes, finest.scale, strict=True)
        if axis.unit or scale != 1
    ]
    return ", ".join(known)


def _tree(page: Page) -> list[Element]:
    """Write the nodes below a group, each with a link to its own page."""
    if not page.below:
        is_known = page.node["children"] is not None
        text = "nothing" if is_known else "The server does not list it; add a path to /tree/."
        return [element("h2", "Content"), element("p", text, class_="dim")]
    head = element("thead", element("tr", [element("th", name) for name in _COLUMNS]))
    found = list(_rows(page))
    more = [
        element("p", element("a", text, href=_href(page, page.path, skip)))
        for text, skip in _other_pages(page)
    ]
    order = "Shapes, blocks and axes are in C order (z, y, x); N5 itself lists x first."
    return [
        element("h2", "Content"),
        element("p", order, class_="dim"),
        element("table", head, element("tbody", found)),
        *more,
    ]


def _rows(page: Page) -> Iterator[Element]:
    above = [page.path]
    for level, _, node in page.below:
        if node["kind"] == "more":
            if level > 1:
                text = f"... and {node['n_more']} more"
                link = element("a", text, href=_href(page, above[level - 1]))
                yield element("tr", element("td", link, colspan="6"), class_=_indent(level))
            continue
        path = join(above[level - 1], str(node["name"]))
        above[level:] = [path]
        yield _row(node, _href(page, path), level)


def _row(node: dict[str, Any], href: str, level: int) -> Element:
    kind = node["kind"]
    name = element("td", element("a", node["name"], href=href))
    if "error" in node:
        text = f"{kind}: {' '.join(node['error'].split())}"
        cells = [element("td", text, class_="error", colspan="5")]
    elif kind == "group":
        cells = [element("td", _setup(node), colspan="5")]
    else:
        names = names_of_axes(node).strip()
        texts = (
            _tuple(node["shape_c"]),
            node["shown_as"],
            _tuple(node["chunk_shape_c"]),
            node["compression"]["type"],
            _axes(node) or names,
        )
        cells = [
            element("td", text, data_name=column)
            for column, text in zip(_COLUMNS[1:], texts, strict=True)
        ]
    return element("tr", name, cells, class_=f"{_indent(level)} {kind}")


def _indent(level: int) -> str:
    return f"l{min(level, 4) - 1}"


def _setup(node: dict[str, Any]) -> str:
    """Return the names of a setup of BigDataViewer."""
    setup = node.get("setup") or {}
    return str(setup.get("name") or "")


def _axes(node: dict[str, Any]) -> str:
    """Return the axes of a dataset in C order, with scale and unit."""
    if not node.get("geometry"):
        return ""
    axes = reversed(node["geometry"]["axes_n5"])
    return ", ".join(
        f"{axis['name'] or '?'} {axis['scale']:g} {axis['unit'] or ''}".strip() for axis in axes
    )


def _other_pages(page: Page) -> Iterator[tuple[str, int]]:
    direct: list[dict[str, Any]] = [node for level, _, node in page.below if level == 1]
    n_more = sum(node["n_more"] for node in direct if node["kind"] == "more")
    n_shown = sum(node["kind"] != "more" for node in direct)
    if page.skip:
        yield "first nodes", 0
    if n_more:
        yield f"next nodes, {n_more} more", page.skip + n_shown


def _snippets(code: Mapping[str, str]) -> list[Element]:
    return [
        element(
            "div",
            element("button", "copy", type="button", hidden=""),
            element("b", name),
            element("pre", text),
            class_="code",
        )
        for name, text in code.items()
    ]


def _cannot_open(node: Mapping[str, Any]) -> set[str]:
    """Return the libraries that cannot open a node from this server."""
    if node["kind"] == "array":
        is_of_one_size = "n_bytes" in node
        return set() if is_of_one_size else {"tensorstore"}  # which knows no strings
    # over HTTP only a document tells that a group is there, and Java writes none without attributes
    is_described = node["attributes"] or (node["path"] == "/" and node["n5"] is not None)
    return set() if is_described else {"n5zarr"}


def _addresses(page: Page) -> list[Element]:
    views = {
        "zarr3/": "Zarr v3, for any reader of Zarr",
        "zarr2/": "Zarr v2",
        "zarr/": "both; a reader has to say which it wants",
        "ome/": "the images as OME-Zarr 0.5",
        "n5/": "the container as it is stored",
    }
    links = [
        (element("dt", element("code", page.url + at)), element("dd", text))
        for at, text in views.items()
    ]
    return [element("h2", "Addresses"), element("dl", links, class_="addresses")]


def _tuple(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"
