"""Write the start page, and that of each group and dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from n5zarr.store.info import rows
from n5zarr.viewing.serve.html import content_hash, element, written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from n5zarr.store.inspect import Described
    from n5zarr.viewing.images import Image

__all__ = ["POLICY", "Page", "failure_page", "node_page"]

_STYLE = """
:root { color-scheme: light dark; --line: #d5d9de; --soft: #f4f6f8; --dim: #5b6470; --link: #0a58b8 }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a414a; --soft: #20252b; --dim: #9aa5b1; --link: #7db7ff }
  body { background: #14181c; color: #e4e8ec }
}
* { box-sizing: border-box }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 82rem; padding: 1rem 1.25rem }
h1, h2, td, dd, .path { overflow-wrap: anywhere }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem }
a { color: var(--link) } .dim, .path, dt, th { color: var(--dim) } .path { margin: .2rem 0 }
code, pre, .mono { font: .86em/1.45 ui-monospace, monospace }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .8rem 0 }
dd { margin: 0; min-width: 0 }
.images { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(18.5rem, 100%), 1fr)) }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: .8rem; min-width: 0 }
.card h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere } .card p { margin: .25rem 0 }
.card img { aspect-ratio: 3 / 2; background: var(--soft); border-radius: .25rem; display: block;
  margin-bottom: .6rem; object-fit: contain; width: 100% }
.view { background: var(--link); border-radius: .3rem; color: Canvas; display: inline-block;
  padding: .15rem .7rem; text-decoration: none }
summary { cursor: pointer; margin-top: .35rem }
.code { background: var(--soft); border-radius: .3rem; margin: .4rem 0; padding: .5rem .6rem }
.code pre { margin: .3rem 0 0; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere }
.code b { font-weight: 600 } button { float: right; font: inherit; font-size: .85em }
table { border-collapse: collapse; width: 100% }
th { font-weight: 500; text-align: left } td, th { padding: .25rem .8rem .25rem 0; vertical-align: top }
tr { border-bottom: 1px solid var(--line) } .error { color: #c0392b }
td:first-child { padding-left: calc(var(--level, 0) * 1.1rem) }
.l1 { --level: 1 } .l2 { --level: 2 } .l3 { --level: 3 } .group td:first-child { font-weight: 600 }
@media (max-width: 50rem) {
  thead { display: none } tr, td { display: block } tr { padding: .4rem 0 }
  td { padding: 0 0 0 calc(var(--level, 0) * 1.1rem) } td:empty { display: none }
  td[data-name]::before { color: var(--dim); content: attr(data-name) " " }
}
"""
_SCRIPT = """
for (const button of document.querySelectorAll("button")) {
  button.hidden = false;
  button.onclick = async () => {
    const code = button.parentNode.querySelector("pre");
    getSelection().selectAllChildren(code);  // all there is where pages may not write
    await navigator.clipboard?.writeText(code.textContent);
    button.textContent = "copied";
  };
}
"""
POLICY = (
    f"default-src 'none'; img-src 'self'; style-src {content_hash(_STYLE)}; "
    f"script-src {content_hash(_SCRIPT)}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""The Content-Security-Policy of the pages: nothing runs or is loaded but their own."""

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
        The node, below what is served.
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


def node_page(page: Page) -> bytes:
    """Write the page of a group or dataset."""
    name = page.container.rstrip("/").rpartition("/")[2] or page.container
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
        _code(page.url, page.path, is_array=is_array),
        None if page.path else _addresses(page),
    )


def failure_page(title: str, message: str, home: str) -> bytes:
    """Write a page that says what is wrong."""
    back = element("p", element("a", "to the start page", href=home))
    return _document(title, element("h1", title), element("p", message), back)


def _document(title: str, *content: Element | None) -> bytes:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", _STYLE),
    )
    return written(
        element("html", head, element("body", content, element("script", _SCRIPT)), lang="en")
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
    left_out = {"children", "read only"}
    facts = [(name, text) for name, text in rows(page.node) if name not in left_out]
    return element("dl", [(element("dt", name), element("dd", text)) for name, text in facts])


def _images(page: Page) -> list[Element]:
    if page.images is None:
        text = "The images are still being looked for. Load the page again to see them."
        return [element("h2", "Images"), element("p", text, class_="dim")]
    if not page.images:
        return []
    title = element("h2", f"Images ({page.n_images})" if page.n_images > 1 else "Image")
    cards = element("div", [_card(page, image) for image in page.images], class_="images")
    n_more = page.n_images - len(page.images)
    more = f"{n_more} more: open the groups below to see theirs." if n_more else ""
    return [title, cards, *([element("p", more, class_="dim")] if more else [])]


def _card(page: Page, image: Image) -> Element:
    finest = image.levels[0]
    facts = [
        f"{_tuple(finest.shape)} {', '.join(axis.name for axis in image.axes)}, {finest.dtype}",
        ", ".join(_spacing(image)) or None,
        f"{len(image.levels)} levels" if len(image.levels) > 1 else None,
        ", ".join(channel.name for channel in image.channels if channel.name) or None,
        "labels" if image.is_labels else None,
    ]
    below = quote(image.path)
    picture = element("img", alt="", loading="lazy", src=f"{page.url}thumbnail/{below}.png")
    return element(
        "div",
        picture,
        element("h3", image.name),
        element("p", image.path, class_="path mono") if image.path != image.name else None,
        [element("p", fact, class_="dim") for fact in facts if fact],
        _links(page, image),
        element(
            "details",
            element("summary", "Code"),
            _code(page.url, _stored(image), is_array=True),
        )
        if _stored(image) is not None
        else None,
        class_="card",
    )
