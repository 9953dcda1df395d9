"""The commands ``tree``, ``info``, ``nwb convert`` and ``demo``: read arguments, print results."""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

import n5zarr
from n5zarr.arrays.kernel import is_compiled
from n5zarr.cli.bdv import project_rows, setup_names
from n5zarr.cli.demo import PICTURE, report, write
from n5zarr.cli.stopping import stoppable
from n5zarr.errors import N5Error, N5Warning
from n5zarr.store import inspect
from n5zarr.store.info import bytes_text, names_of_axes, rows
from n5zarr.store.location import sample_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["app"]

app = typer.Typer(
    name="n5zarr",
    help="Look into N5 containers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

nwb = typer.Typer(help="Work with NWB files.", no_args_is_help=True)
app.add_typer(nwb, name="nwb")

Location = Annotated[
    str, typer.Argument(metavar="PATH", help="A container, a node in one, or BigDataViewer's XML.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

Options = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        "-o",
        metavar="NAME=VALUE",
        help="For a URL: an option of fsspec, such as anon=true. May be repeated.",
    ),
]

type _Described = dict[str, Any]
"""JSON from `describe` or `describe_tree`, or a part of it."""

_STYLES = {
    "group": "bold",
    "array": "bold cyan",
    "object": "yellow",
    "foreign": "yellow",
    "broken": "bold red",
    "unreadable": "bold red",
}


def _console(*, stderr: bool = False) -> Console:
    # fold and cut lines for terminals only
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # attributes may hold half of a character
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else 10_000)


@contextmanager
def _errors_in_one_line(*, debug: bool) -> Iterator[None]:
    """Print errors and warnings as one line on standard error.

    Exit with status 1 for a difference between files, with 2 for any other error.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("always", N5Warning)
            yield
    except (N5Error, OSError) as err:
        if debug:
            raise
        _complain("error", err)
        for note in getattr(err, "__notes__", ()):
            _console(stderr=True).print(f"  {escape(note)}", soft_wrap=True)
        raise typer.Exit(1 if getattr(err, "kind", "") == "differs" else 2) from None
    except (typer.Exit, typer.BadParameter):
        raise
    except Exception as err:
        if debug:
            raise
        # mostly from the library that reads a URL: a wrong address, name or key
        _complain("error", f"{type(err).__name__}: {err} (--debug shows where)")
        raise typer.Exit(2) from None


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _complain("warning", message)


def _complain(word: str, what: object) -> None:
    text = " ".join(str(what).split())
    _console(stderr=True).print(f"n5zarr: {word}: {escape(text)}", soft_wrap=True)


def _print_json(document: object) -> None:
    # JSON has no NaN: print such attributes as text
    typer.echo(json.dumps(_finite(document), indent=2, allow_nan=False))


def _finite(value: object) -> object:
    """Replace NaN and infinities by text."""
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _storage_options(given: list[str] | None) -> dict[str, Any] | None:
    """Parse NAME=VALUE; a value that is no JSON is text."""
    options: dict[str, Any] = {}
    for option in given or []:
        name, equals, value = option.partition("=")
        if not equals:
            message = f"expected NAME=VALUE, got {option!r}"
            raise typer.BadParameter(message, param_hint="--storage-option")
        try:
            options[name] = json.loads(value.lower() if value in ("True", "False") else value)
        except ValueError:
            options[name] = value
    return options or None


def _version(value: bool) -> None:
    if value:
        compiled = "with" if is_compiled() else "without"
        typer.echo(f"n5zarr {n5zarr.__version__} ({compiled} the compiled kernel)")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Look into N5 containers."""


@app.command()
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
    with _errors_in_one_line(debug=debug):
        options = _storage_options(option)
        if as_json:
            found = inspect.describe_tree(location, size=size, depth=depth, storage_options=options)
            _print_json(found)
            n_unreadable = _count_unreadable(found)
        else:
            each = inspect.describe_each(location, size=size, depth=depth, storage_options=options)
            n_unreadable = _print_tree(each)
    if n_unreadable:
        _complain("error", f"{location}: {n_unreadable} of the nodes cannot be read")
        raise typer.Exit(2)


def _count_unreadable(node: _Described) -> int:
    below: int = sum(map(_count_unreadable, node.get("children", ())))
    return below + int(node["kind"] == "unreadable")


def _print_tree(nodes: Iterable[inspect.Described]) -> int:
    """Print each node as soon as it is known; return how many storage refuses to read."""
    console = _console()
    is_terminal = console.is_terminal
    guides = Tree.ASCII_GUIDES if console.options.ascii_only else Tree.TREE_GUIDES[0]
    space, going_on, fork, end = map(str, guides)
    n_unreadable = 0
    above: list[str] = []  # what is drawn below the nodes above
    for level, is_last, node in nodes:
        del above[max(level - 1, 0) :]
        drawn = "".join(above) + (end if is_last else fork) if level else ""
        line = Text(drawn) + _label(node)
        if is_terminal:
            console.print(line, soft_wrap=True)
        else:
            typer.echo(line.plain)
        if level:
            above.append(space if is_last else going_on)
        n_unreadable += node["kind"] == "unreadable"
    return n_unreadable


def _label(node: _Described) -> Text:
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


@app.command()
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
    with _errors_in_one_line(debug=debug):
        options = _storage_options(option)
        description = inspect.describe(location, size=size, storage_options=options)
        damage = list(inspect.find_damage(location, storage_options=options)) if verify else []
        unfinished = inspect.find_leftovers(location) if verify else []
        if verify:
            description["damaged_blocks"] = [str(err) for err in damage]
            description["unfinished_files"] = [*unfinished]
        if as_json:
            _print_json(description)
        else:
            _print_info(description)
    for err in damage:
        _complain("error", err)
    for name in unfinished:
        _complain("warning", f"{name}: left by a writer that was killed; not read, may be removed")
    if damage:
        raise typer.Exit(2)


def _print_info(node: _Described) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in (*rows(node), *project_rows(node)):
        table.add_row(name, escape(value))
    console = _console()
    console.print(
        f"[{_STYLES[node['kind']]}]{escape(node['container'])}[/]  {escape(node['path'])}"
    )
    console.print(table)
    if node["attributes"]:
        console.print("[dim]attributes[/]")
        for key, value in node["attributes"].items():
            text = f"{key}: {json.dumps(value, ensure_ascii=False)}"
            console.print(f"  {escape(text)}", soft_wrap=True)


@nwb.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="NWB file as HDF5, N5 or Zarr.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="*.n5, *.zarr or *.nwb (HDF5).")],
    to: Annotated[
        Literal["hdf5", "n5", "zarr"] | None,
        typer.Option(help="Format of OUT. Default: chosen by its suffix."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Compare OUT with IN, value by value.")
    ] = True,
    debug: Debug = False,
) -> None:
    """Copy an NWB file to another format.

    OUT appears when it is complete and verified: every group, dataset, link, attribute, data type,
    value and specification. Targets of links into other files are copied.
    """
    with _errors_in_one_line(debug=debug):
        from n5zarr import hdmf  # noqa: PLC0415 - the extra may be missing

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
        console = _console(stderr=True)
        quiet = not console.is_terminal
        progress = Progress(*columns, TransferSpeedColumn(), console=console, disable=quiet)
        with progress as bar, stoppable() as stop_if_asked:
            tasks: dict[str, TaskID] = {}

            def show(stage: str, done: int, total: int) -> None:
                stop_if_asked()
                if total and stage not in tasks:
                    tasks[stage] = bar.add_task(stage, total=total)
                if total:
                    bar.update(tasks[stage], completed=done)

            hdmf.convert(source, target, to=to, overwrite=overwrite, verify=verify, progress=show)
        checked = f"equal to {source}" if verify else "not compared"
        _console().print(f"{escape(target)}: written, {escape(checked)}", soft_wrap=True)


@app.command()
def demo(
    output: Annotated[str, typer.Option("--output", "-o", help="Picture to write.")] = PICTURE,
    debug: Debug = False,
) -> None:
    """Read the sample container, write a picture of it, and write a new container."""
    path = sample_path()
    console = _console()
    with _errors_in_one_line(debug=debug):
        console.print("[bold]The container[/]  n5zarr tree SAMPLE\n")
        _print_tree(inspect.describe_each(path))
        console.print("\n[bold]Reading it[/]\n")
        for line in report(path, output):
            console.print(escape(line), soft_wrap=True)
        console.print("\n[bold]Writing[/]\n")
        for line in write(path):
            console.print(escape(line), soft_wrap=True)
    console.print(
        "\n[bold]What happened[/]\n\n"
        "The container is N5, byte for byte as Java writes it: attributes.json files and one file\n"
        "per block, axes x first. n5zarr.N5Store showed it to zarr as Zarr v3, axes z first, and\n"
        "passed full-size blocks through as they are. n5zarr.open decoded the labels itself.\n"
        "What was written is N5 again, for Java, tensorstore and z5py as for zarr.\n"
    )
    console.print("[bold]What to try next[/]\n")
    for line in (
        f"n5zarr info {path}/em/s0",
        "n5zarr tree YOUR.n5",
        "python -c \"import n5zarr; print(n5zarr.open('YOUR.n5/path/to/dataset'))\"",
    ):
        console.print(f"  {escape(line)}", soft_wrap=True)
