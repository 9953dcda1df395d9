"""Write the page of a group or dataset, and that of an error, with the templates beside this."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from n5zarr.conventions.units import symbol
from n5zarr.format.path import join
from n5zarr.store.info import names_of_axes, rows
from n5zarr.viewing.neuroglancer import can_show
from n5zarr.viewing.serve.policy import source_of
from n5zarr.viewing.snippets import code_for, code_for_image, viewer_links

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from n5zarr.images.image import Image
    from n5zarr.store.inspect import Described

__all__ = ["POLICY", "Page", "base_name", "failure_page", "node_page"]

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
