"""The commands ``tree`` and ``info``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

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
    Library,
    Location,
    Options,
    complain,
    console,
    errors_in_one_line,
    print_json,
    printable,
    say,
    storage_options,
)
from n5zarr.cli.progress import progress_bar
from n5zarr.cli.statistics import histogram_lines, statistics_rows
from n5zarr.store import inspect
from n5zarr.store.info import bytes_text, names_of_axes, rows
from n5zarr.tools.statistics import block_statistics
from n5zarr.tools.validate.check import validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from n5zarr.tools.statistics import BlockStatistics

__all__ = ["info", "print_tree", "tree"]

_MOST_NODES = 100  # of each group; the default of `tree`
_MOST_CHILDREN = 1000  # of a group that `info` reads
_PICTURE = 78  # columns of a histogram, at most
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
    match: Annotated[
        str,
        typer.Option(
            metavar="GLOB",
            help="Only paths below PATH that match, name by name, such as 'setup1*/timepoint0'.",
        ),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(min=0, help="Nodes of each group; 0: all. Default: 100, in JSON all."),
    ] = None,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Print the groups and datasets of a container.

    Shapes are in C order (z, y, x); N5 lists dimensions in reverse (x, y, z).
    If storage refuses to read a node, its line says why, and the exit status is 2.
    """
    if limit is None and not as_json:
        limit = _MOST_NODES
    with errors_in_one_line(debug=debug):
        selected = {"depth": depth, "limit": limit or None, "match": match}
        options: Any = {
            "size": size,
            **selected,
            "storage_options": storage_options(option),
            "backend": backend,
        }
        if as_json:
            found = inspect.describe_tree(location, **options)
            print_json(found)
            n_unreadable = _count_unreadable(found)
        else:
            n_unreadable = print_tree(inspect.describe_each(location, **options))
    if n_unreadable:
        complain("error", f"{location}: {n_unreadable} of the nodes cannot be read")
        raise typer.Exit(2)


def _count_unreadable(node: Described) -> int:
    below: int = sum(map(_count_unreadable, node.get("children", ())))
    return below + int(node["kind"] == "unreadable")


def print_tree(nodes: Iterable[inspect.Described]) -> int:
    """Print each node as soon as it is read; return the number that storage refuses to read."""
    screen = console()
    is_terminal = screen.is_terminal
    guides = Tree.ASCII_GUIDES if screen.options.ascii_only else Tree.TREE_GUIDES[0]
    space, going_on, fork, end = map(str, guides)
    n_unreadable = 0
    above: list[str] = []  # the lines drawn below the nodes above
    for level, is_last, node in nodes:
        del above[max(level - 1, 0) :]
        drawn = "".join(above) + (end if is_last else fork) if level else ""
        line = Text(drawn) + _label(node)
        if is_terminal:
            screen.print(line, soft_wrap=True)
        else:
            say(line.plain)
        if level:
            above.append(space if is_last else going_on)
        n_unreadable += node["kind"] == "unreadable"
    return n_unreadable


def _label(node: Described) -> Text:
    if node["kind"] == "more":
        count = f"{node['n_more']:,}".replace(",", " ")
        return Text(f"... and {count} more (--limit 0 shows all)", "dim")
    name = Text(printable(node["name"]).replace("\n", "\\n"), _STYLES[node["kind"]])
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
    stats: Annotated[
        bool, typer.Option("--stats", help="Range, histogram, empty blocks, from a sample.")
    ] = False,
    all_blocks: Annotated[
        bool, typer.Option("--all-blocks", help="With --stats: read all blocks.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Decode every block, as validate --deep does.")
    ] = False,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Print the metadata of a group or dataset.

    With --verify, also list damaged blocks and unfinished files of killed
    writers; the exit status is 2 if blocks are damaged. The command validate
    finds more.
    """
    with errors_in_one_line(debug=debug):
        options: Any = {"storage_options": storage_options(option), "backend": backend}
        limit = None if as_json else _MOST_CHILDREN
        description = inspect.describe(location, size=size, limit=limit, **options)
        found = _statistics(location, options, all_blocks=all_blocks) if stats else None
        damage, unfinished = _damage(location, options) if verify else ([], [])
        if verify:
            description["damaged_blocks"] = [*damage]
            description["unfinished_files"] = [*unfinished]
        if as_json:
            if found is not None:
                description["statistics"] = asdict(found)
            print_json(description)
        else:
            _print_info(description, found)
    for message in damage:
        complain("error", message)
    for name in unfinished:
        complain("warning", f"{name}: left by a killed writer; never read, can be removed")
    if damage:
        raise typer.Exit(2)


def _statistics(location: str, options: Mapping[str, Any], *, all_blocks: bool) -> BlockStatistics:
    with progress_bar() as show:
        if all_blocks:
            return block_statistics(location, n_blocks=None, progress=show, **options)
        return block_statistics(location, progress=show, **options)


def _damage(location: str, options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """List what cannot be read, and unfinished files."""
    result = validate(location, deep=True, **options)
    damage = [f"{result.container}: {f}" for f in result.findings if f.severity == "error"]
    files = [f.file for f in result.findings if f.kind == "unfinished-file" and f.file]
    return damage, files


def _print_info(node: Described, found: BlockStatistics | None) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    stats = () if found is None else statistics_rows(found)
    for name, value in (*rows(node), *project_rows(node), *stats):
        table.add_row(name, escape(value))
    screen = console()
    screen.print(f"[{_STYLES[node['kind']]}]{escape(node['container'])}[/]  {escape(node['path'])}")
    screen.print(table)
    if found is not None:
        width = min(screen.width, _PICTURE)
        is_ascii = screen.options.ascii_only
        for line in histogram_lines(found, width, ascii_only=is_ascii):
            screen.print(escape(line), soft_wrap=True)
    if node["attributes"]:
        screen.print("[dim]attributes[/]")
        for key, value in node["attributes"].items():
            text = f"{key}: {json.dumps(value, ensure_ascii=False)}"
            screen.print(f"  {escape(text)}", soft_wrap=True)
