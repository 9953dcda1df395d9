"""Describe arrays and groups as HTML for notebooks, in N5's terms and with a small picture."""

from __future__ import annotations

import base64
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from itertools import islice
from typing import Any

import zarr
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr.format.path import join
from n5zarr.images.contrast import n_chunks_sampled
from n5zarr.images.find import find_images
from n5zarr.images.image import Image, ImageLevel
from n5zarr.metadata.inspect import Described, describe_each, info_of
from n5zarr.store.info import names_of_axes, rows
from n5zarr.store.n5_store import N5Store
from n5zarr.viewing.thumbnail import slices_that_fit, thumbnail_png

_SIZE = 256  # pixels of the picture
# limits of what is read: from local files, and from a server
_MOST_NODES = (60, 20)
_MOST_BLOCKS = (256, 8)
_MOST_BYTES = 2**26  # of the elements of these blocks
_CELL = "text-align:left;vertical-align:top"


def make_html(node: AnyArray | zarr.Group) -> str | None:
    """Make HTML of an array or group of a container, with a picture if it is an image.

    It reads little: if a picture needs more than a few blocks, there is none.

    Parameters
    ----------
    node : zarr.Array or zarr.Group
        The array or group.

    Returns
    -------
    str
        HTML without scripts; None if the store presents coordinates as arrays.
    """
    store = node.store
    if not isinstance(store, N5Store) or store.coords:
        return None
    is_remote = store.storage.root is None
    image_path: str | None = node.path
    if isinstance(node, zarr.Array):
        facts = rows(_info_of_array(store, node.path, is_remote=is_remote))
        table = _table((name, value, 0) for name, value in facts if name != "kind")
    else:
        nodes = list(islice(describe_each(store, node.path), 1 + _MOST_NODES[is_remote]))
        is_all = len(nodes) <= _MOST_NODES[is_remote]
        table = _table(_lines(nodes, is_all=is_all)) if len(nodes) > 1 else "an empty group"
        image_path = node.path if is_all else _first_image(node.path, nodes)
    picture = ""
    if image_path is not None:
        with suppress(Exception):  # not an image, Pillow is missing, or blocks are damaged
            picture = _picture(StorePath(store, image_path), is_remote=is_remote)
    kind = "Array" if isinstance(node, zarr.Array) else "Group"
    return (
        f"<div><b>N5{kind}</b> {escape(str(node.store_path))}</div>"
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f"<div>{table}</div>{picture}</div>"
    )


def _info_of_array(store: N5Store, path: str, *, is_remote: bool) -> Mapping[str, Any]:
    """Describe an array, with the stored size of its blocks if these are few local files."""
    info = info_of(store, path)
    if is_remote or info["n_blocks"] > _MOST_BLOCKS[False]:
        return info
    return info_of(store, path, size=True)


def _table(lines: Iterable[tuple[str, str, int]]) -> str:
    """Write a table; each line has a name, a value, and the indentation of the name."""
    cells = (
        f'<tr><td style="{_CELL};padding:0 1em 0 {indent}em">{escape(name)}</td>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value, indent in lines
    )
    return f"<table>{''.join(cells)}</table>"


def _lines(nodes: Sequence[Described], *, is_all: bool) -> Iterable[tuple[str, str, int]]:
    """Yield a line of the table for each node below a group."""
    for level, _, described in nodes[1:]:
        node: dict[str, Any] = dict(described)
        if node["kind"] == "array":
            shape = f"{tuple(node['shape_c'])}{names_of_axes(node)}"
            facts = [shape, str(node["shown_as"]), node["compression"]["type"]]
        else:
            facts = [str(node.get("error", "" if node["kind"] == "group" else node["kind"]))]
        yield str(node["name"]), ", ".join(facts), level - 1
    if not is_all:
        yield "...", "", 0


def _first_image(top: str, nodes: Sequence[Described]) -> str | None:
    """Return the group of the first array in a cut list of nodes, if all its nodes are listed."""
    path: list[str] = []
    for i, (level, _, node) in enumerate(nodes[1:], 1):
        path[level - 1 :] = [str(node["name"])]
        if node["kind"] == "array":
            after = nodes[i:]
            is_whole = any(other.level < level for other in after)
            return join(top, *path[:-1]) if is_whole and level > 1 else None
    return None


def _picture(place: StorePath, *, is_remote: bool) -> str:
    """Draw the first image; return no HTML if this would read too much."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = find_images(place)[0]
        level = _cheap_level(image, is_remote=is_remote)
        if level is None:
            return ""
        png = base64.b64encode(thumbnail_png(image, size=_SIZE, level=level)).decode()
    name = escape(image.path or image.name)
    shown = f'<img alt="slices of {name}" src="data:image/png;base64,{png}">'
    return f"<div>{shown}<div>{escape(image.path)}</div></div>"


def _cheap_level(image: Image, *, is_remote: bool) -> int | None:
    """Return the level that fits the picture, or a coarser one if that would read too much."""
    coarsest = image.levels[-1]
    n_channels = 1 if image.is_labels else len(image.channels)
    n_sampled = 0 if image.is_labels else n_chunks_sampled(image)
    for index in range(slices_that_fit(image, _SIZE).level, len(image.levels)):
        level = image.levels[index]
        n_shown = slices_that_fit(image, _SIZE, level=index).n_blocks(n_channels)
        n_bytes = n_shown * _chunk_bytes(level) + n_sampled * _chunk_bytes(coarsest)
        if n_shown + n_sampled <= _MOST_BLOCKS[is_remote] and n_bytes <= _MOST_BYTES:
            return index
    return None


def _chunk_bytes(level: ImageLevel) -> int:
    return math.prod(level.chunks) * level.dtype.itemsize
