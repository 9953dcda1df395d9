"""Describe arrays, groups and containers in N5's terms, for ``.info`` and ``n5zarr info``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, override

from n5zarr.container.nodes import read_document
from n5zarr.format.lenient_json import JSON
from n5zarr.format.version import VERSION_KEY
from n5zarr.storage.requests import Steps

_MOST_NAMES = 20  # of the children of a group, in one line


class Info(Mapping[str, Any]):
    """The description of an array, a group or a container; its text has one line for each fact.

    A mapping with the members that ``n5zarr info --json`` prints. Those named ``..._n5`` are in N5
    order, those named ``..._c`` in C order.

    Parameters
    ----------
    description : mapping
        The members.
    """

    def __init__(self, description: Mapping[str, JSON]) -> None:
        self._description = dict(description)

    @override
    def __getitem__(self, name: str) -> Any:
        return self._description[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._description)

    @override
    def __len__(self) -> int:
        return len(self._description)

    def __repr__(self) -> str:
        lines = [("container", self["container"])]
        lines += [("path", self["path"])] if "path" in self else []
        lines += rows(self)
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name.ljust(width)} : {value}" for name, value in lines)


def read_version() -> Steps[JSON]:
    """Read the version attribute of the root; None if it is missing.

    N5 spec, "File-system specification", item 3.
    """
    document = yield from read_document("")
    return document.get(VERSION_KEY) if isinstance(document, dict) else None


def rows(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line about an array, a group or a container."""
    yield "kind", node["kind"]
    yield "N5 version", "none" if node["n5"] is None else str(node["n5"])
    if node["kind"] == "group":
        yield from _group_rows(node)
    elif node["kind"] == "array":
        yield from _array_rows(node)
    yield from _option_rows(node)
    if "damaged_blocks" in node:
        yield "damaged blocks", str(len(node["damaged_blocks"]))


def _group_rows(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    names, count = node["children"], node["n_children"]
    if names is None:
        yield "children", "unknown: the server does not list them; open them by their paths"
        return
    more = f", and {count - _MOST_NAMES} more" if count > _MOST_NAMES else ""
    yield "children", ", ".join(names[:_MOST_NAMES]) + more or "none"
    if "children_by_kind" not in node:
        yield "by kind", f"{count} nodes, not read (--json reads all)"
    elif names:
        counted = node["children_by_kind"].items()
        many = [f"{n} {kind}{'s' if n > 1 and kind != 'broken' else ''}" for kind, n in counted]
        yield "by kind", ", ".join(many)


def _array_rows(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "shape, C order", str(tuple(node["shape_c"])) + names_of_axes(node)
    yield "dimensions, N5 order", str(list(node["dimensions_n5"]))
    if node["geometry"] is not None:
        yield "axes, N5 order", _geometry(node["geometry"])
    for problem in node.get("axes_problems", ()):
        yield "axes, not understood", problem
    data_type, stored_type = node["shown_as"], node["data_type"]
    is_same = data_type == stored_type
    yield "data type", data_type if is_same else f"{data_type} (stored as {stored_type})"
    yield "compression", json.dumps(node["compression"])
    yield "chunk shape, C order", str(tuple(node["chunk_shape_c"]))
    yield "block size, N5 order", str(list(node["block_size_n5"]))
    stored = f", {node['n_blocks_stored']} stored" if "n_blocks_stored" in node else ""
    yield "blocks", f"{node['n_blocks']}{stored}; grid {list(node['grid_n5'])} in N5 order"
    if "n_bytes" in node:
        yield "size as array", bytes_text(node["n_bytes"])
    if "n_bytes_stored" in node:
        yield "size on disk", bytes_text(node["n_bytes_stored"]) + _ratio(node)


def _option_rows(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the options with which an open container is presented and written."""
    for name in (
        "store_type",
        "backend",
        "zarr_format",
        "codecs",
        "axis_order",
        "chunk_grid",
        "coords",
        "durability",
        "read_only",
        "opened_as",
    ):
        if name in node:
            yield (
                name.replace("_", " ").replace("zarr", "Zarr"),
                "per node" if node[name] is None else str(node[name]),
            )


def _geometry(geometry: Mapping[str, Any]) -> str:
    axes = []
    for axis in geometry["axes_n5"]:
        unit = f" {axis['unit']}" if axis["unit"] else ""
        start = f" from {axis['translation']:g}" if axis["translation"] else ""
        axes.append(f"{axis['name'] or '?'} {axis['scale']:g}{unit}{start}")
    return f"{', '.join(axes)}  ({geometry['convention']})"


def _ratio(node: Mapping[str, Any]) -> str:
    # the ratio describes the compression only if all blocks exist
    complete = node["n_blocks_stored"] == node["n_blocks"] > 0
    return (
        f", {node['n_bytes_stored'] / node['n_bytes']:.1%}"
        if complete and node.get("n_bytes")
        else ""
    )


def names_of_axes(node: Mapping[str, Any]) -> str:
    """Return the names of an array's axes in C order, after a space; empty without names.

    Parameters
    ----------
    node : mapping
        The description of the array.
    """
    names = node["axes_c"]
    return " " + ", ".join(name or "?" for name in names) if names else ""


def bytes_text(count: float) -> str:
    """Return a number of bytes with a binary unit.

    Examples
    --------
    >>> bytes_text(491520)
    '480.0 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} PiB"


def counted(n: int, word: str) -> str:
    """Return a number with a noun.

    Examples
    --------
    >>> counted(1, "block"), counted(0, "block")
    ('1 block', '0 blocks')
    """
    return f"{n} {word}{'' if n == 1 else 's'}"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers, sorted, shortened where they follow each other.

    Examples
    --------
    >>> ranges([0, 1, 2, 3, 50, 40])
    '0-3, 40, 50'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
