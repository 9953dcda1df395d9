"""The commands ``tree`` and ``info``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from n5zarr.cli.bdv import project_rows, setup_names
from n5zarr.cli.common import (
    AsJson,
    Debug,
    Described,
    Location,
    Options,
    complain,
    console,
    errors_in_one_line,
    print_json,
    storage_options,
)
from n5zarr.store import inspect
from n5zarr.store.info import bytes_text, names_of_axes, rows

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["info", "print_tree", "tree"]

_STYLES = {
    "group": "bold",
    "array": "bold cyan",
    "object": "yellow",
    "foreign": "yellow",
    "broken": "bold red",
    "unreadable": "bold red",
}


def tree(
    location: Location,
    as_json: AsJson = False,
    size: Annotated[bool, typer.Option("--size", help="Count blocks and bytes stored.")] = False,
    depth: Annotated[int | None, typer.Option(min=0, help="Number of levels below PATH.")] = None,
    option: Options = None,
    debug: Debug = False,
) -> None:
    """Print the groups and datasets of a container.

    Shapes are in C order (z, y, x); N5 lists dimensions in reverse (x, y, z). The line of a node
    that may not be read says why; the exit status is 2 then.
    """
    with errors_in_one_line(debug=debug):
        options = storage_options(option)
        if as_json:
            found = inspect.describe_tree(location, size=size, depth=depth, storage_options=options)
            print_json(found)
            n_unreadable = _count_unreadable(found)
        else:
            each = inspect.describe_each(location, size=size, depth=depth, storage_options=options)
            n_unreadable = print_tree(each)
    if n_unreadable:
        complain("error", f"{location}: {n_unreadable} of the nodes cannot be read")
        raise typer.Exit(2)


def _count_unreadable(node: Described) -> int:
    below: int = sum(map(_count_unreadable, node.get("children", ())))
    return below + int(node["kind"] == "unreadable")


def print_tree(nodes: Iterable[inspect.Described]) -> int:
    """Print each node as soon as it is known; return how many storage refuses to read."""
    screen = console()
    is_terminal = screen.is_terminal
    guides = Tree.ASCII_GUIDES if screen.options.ascii_only else Tree.TREE_GUIDES[0]
    space, going_on, fork, end = map(str, guides)
    n_unreadable = 0
    above: list[str] = []  # what is drawn below the nodes above
    for level, is_last, node in nodes:
        del above[max(level - 1, 0) :]
        drawn = "".join(above) + (end if is_last else fork) if level else ""
        line = Text(drawn) + _label(node)
        if is_terminal:
            screen.print(line, soft_wrap=True)
        else:
            typer.echo(line.plain)
        if level:
            above.append(space if is_last else going_on)
        n_unreadable += node["kind"] == "unreadable"
    return n_unreadable


def _label(node: Described) -> Text:
    name = Text(node["name"], _STYLES[node["kind"]])
    if "error" in node:
        return Text.assemble(name, f"  {node['kind']}: {' '.join(node['error'].split())}")
    if node["kind"] == "group":
        return Text.assemble(name, setup_names(node))
    parts = [
        _tuple(node["shape_c"]) + names_of_axes(node),
        node["shown_as"],
        node["compression"]["type"],
    ]
    parts.append(f"blocks {_tuple(node['chunk_shape_c'])}")
    if "n_bytes_stored" in node:
        stored = f"{node['n_blocks_stored']} of {node['n_blocks']} blocks"
        parts += [stored, bytes_text(node["n_bytes_stored"])]
    return Text.assemble(name, f"  {'  '.join(parts)}")


def _tuple(values: list[int]) -> str:
    return str(tuple(values))


def info(
    location: Location,
    as_json: AsJson = False,
    size: Annotated[
        bool, typer.Option("--size/--no-size", help="Count blocks and bytes stored.")
    ] = True,
    verify: Annotated[bool, typer.Option("--verify", help="Decode every block.")] = False,
    option: Options = None,
    debug: Debug = False,
) -> None:
    """Print the metadata of a group or dataset.

    With --verify, decode every stored block of the dataset, or below the group. Damaged blocks are
    listed, and the exit status is 2. Unfinished files of killed writers are listed, too.
    """
    with errors_in_one_line(debug=debug):
        options = storage_options(option)
        description = inspect.describe(location, size=size, storage_options=options)
        damage = list(inspect.find_damage(location, storage_options=options)) if verify else []
        unfinished = inspect.find_leftovers(location) if verify else []
        if verify:
            description["damaged_blocks"] = [str(err) for err in damage]
            description["unfinished_files"] = [*unfinished]
        if as_json:
            print_json(description)
        else:
            _print_info(description)
    for err in damage:
        complain("error", err)
    for name in unfinished:
        complain("warning", f"{name}: left by a writer that was killed; not read, may be removed")
    if damage:
        raise typer.Exit(2)


def _print_info(node: Described) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in (*rows(node), *project_rows(node)):
        table.add_row(name, escape(value))
    screen = console()
    screen.print(f"[{_STYLES[node['kind']]}]{escape(node['container'])}[/]  {escape(node['path'])}")
    screen.print(table)
    if node["attributes"]:
        screen.print("[dim]attributes[/]")
        for key, value in node["attributes"].items():
            text = f"{key}: {json.dumps(value, ensure_ascii=False)}"
            screen.print(f"  {escape(text)}", soft_wrap=True)
