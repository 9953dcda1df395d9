"""The command ``tree``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree

from n5zarr.cli.messages import complain, console, print_json, print_text, printable
from n5zarr.cli.options import ACCESS, AsJson, Location, options_of
from n5zarr.metadata import inspect
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.secrets import named
from n5zarr.store.info import bytes_text, names_of_axes

_MOST_LINES = 200  # by default
_HINT = "Not all: --limit 0 shows all, --match GLOB a part, --depth 1 the first level."
STYLES = {
    "group": "bold",
    "array": "bold cyan",
    "object": "yellow",
    "foreign": "yellow",
    "broken": "bold red",
    "unreadable": "bold red",
}
"""The style of the name of a node, by the kind of the node."""


@options_of(inspect.describe, only=ACCESS)
def tree(
    location: Location,
    *,
    as_json: AsJson = False,
    size: Annotated[bool, typer.Option("--size", help="Count blocks and bytes stored.")] = False,
    depth: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Number of levels below LOCATION.")
    ] = None,
    match: Annotated[
        str,
        typer.Option(
            metavar="GLOB",
            help="Only paths below LOCATION that match, name by name, such as "
            "'setup1*/timepoint0'.",
        ),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Nodes of each group; 0: all. Default: as fit in 200 lines; in JSON all.",
        ),
    ] = None,
    **access: Any,
) -> None:
    """Print the groups and datasets of a container.

    Shapes are in C order (z, y, x); N5 lists dimensions in reverse (x, y, z). If storage refuses to
    read a node, its line says why, and the exit status is 2.
    """
    options: dict[str, Any] = {
        "size": size,
        "depth": depth,
        "limit": limit or None,
        "match": match,
        "geometry": True,
        **access,
    }
    if as_json:
        found = inspect.describe_tree(location, **options)
        print_json(found)
        n_unreadable = _count_unreadable(found)
    else:
        total = _MOST_LINES if limit is None else None
        with asking_once():
            n_unreadable = print_tree(inspect.describe_each(location, total=total, **options))
    if n_unreadable:
        complain("error", f"{named(str(location))}: {n_unreadable} of the nodes cannot be read")
        raise typer.Exit(2)


def _count_unreadable(node: Mapping[str, Any]) -> int:
    below = sum(_count_unreadable(child) for child in node.get("children", ()))
    return below + int(node["kind"] == "unreadable")


def print_tree(nodes: Iterable[inspect.Described]) -> int:
    """Print each node as soon as it is read; return the number that storage refuses to read."""
    screen = console()
    guides = Tree.ASCII_GUIDES if screen.options.ascii_only else Tree.TREE_GUIDES[0]
    space, going_on, fork, end = map(str, guides)
    n_unreadable = 0
    above: list[str] = []  # the lines drawn below the nodes above
    is_cut = False
    for level, is_last, node in nodes:
        if node["kind"] == "more":
            is_cut = True
            if node["n_more"] is None:
                continue
        del above[max(level - 1, 0) :]
        drawn = "".join(above) + (end if is_last else fork) if level else ""
        line = Text(drawn) + _label(node)
        if level:
            above.append(space if is_last else going_on)
        if screen.is_terminal:
            print_text(line, hang="".join(above) + space)
        else:  # ten times as fast
            typer.echo(printable(line.plain))
        n_unreadable += node["kind"] == "unreadable"
    if is_cut:
        print_text(Text(_HINT, "dim"))
    return n_unreadable


def _label(node: Mapping[str, Any]) -> Text:
    if node["kind"] == "more":
        count = f"{node['n_more']:,}".replace(",", " ")
        return Text(f"... and {count} more", "dim")
    name = Text(printable(node["name"]).replace("\n", "\\n"), STYLES[node["kind"]])
    if "error" in node:
        parts = [f"{node['kind']}: {' '.join(node['error'].split())}"]
    elif node["kind"] == "group":
        parts = [setup_text(node["setup"])] if node.get("setup") else []
    else:
        parts = [
            str(tuple(node["shape_c"])) + names_of_axes(node),
            node["shown_as"],
            node["compression"]["type"],
            f"blocks {tuple(node['chunk_shape_c'])}",
        ]
    if "n_bytes_stored" in node:
        parts += [
            f"{node['n_blocks_stored']} of {node['n_blocks']} blocks",
            bytes_text(node["n_bytes_stored"]),
        ]
    return Text("  ").join([name, *map(Text, parts)])


def setup_text(setup: Mapping[str, Any]) -> str:
    """Return the names that BigDataViewer's XML gives to a setup."""
    names = [f"{key} {name}" for key, name in setup["names"].items()]
    return ", ".join([setup["name"], *names] if setup["name"] else names)
