"""The command ``convert``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from n5zarr.cli.common import (
    Debug,
    DryRun,
    Library,
    Options,
    Overwrite,
    Resume,
    Scheduler,
    Workers,
    console,
    errors_in_one_line,
    storage_options,
    whole_numbers,
)
from n5zarr.cli.progress import progress_bar
from n5zarr.store.info import bytes_text
from n5zarr.tools.convert.convert import Conversion, ConvertedArray
from n5zarr.tools.convert.convert import convert as convert_all
from n5zarr.tools.rechunk import rechunk as rechunk_all

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["convert", "rechunk"]

_MOST_ROWS = 20

Codec = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Compression: raw, gzip, zstd, blosc, ..., or as JSON."),
]


def convert(
    source: Annotated[
        str,
        typer.Argument(metavar="SRC", help="N5 or Zarr, whole or a part; or BigDataViewer's XML."),
    ],
    destination: Annotated[str, typer.Argument(metavar="DST", help="Where to write the copy.")],
    to: Annotated[
        Literal["zarr", "zarr2", "n5"] | None,
        typer.Option(help="Format of DST: Zarr v3, Zarr v2 or N5. Default: by its suffix."),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Arrays to copy, such as 'em/*'. May be repeated."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Arrays to leave out. May be repeated."),
    ] = None,
    level: Annotated[
        int | None, typer.Option(metavar="N", help="Copy only level N of pyramids.")
    ] = None,
    ome: Annotated[
        bool, typer.Option("--ome", help="Write OME-Zarr 0.5: images with axes, units and scale.")
    ] = False,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="With --ome, images that are labels. May be repeated."),
    ] = None,
    coords: Annotated[
        bool, typer.Option("--coords", help="Write coordinates of axes as arrays, for xarray.")
    ] = False,
    chunks: Annotated[
        str | None, typer.Option(metavar="Z,Y,X", help="Elements of a chunk; or one number.")
    ] = None,
    shards: Annotated[
        str | None, typer.Option(metavar="Z,Y,X", help="Elements of a shard; or one number.")
    ] = None,
    codec: Codec = None,
    shards_of_java: Annotated[
        str | None,
        typer.Option(metavar="Z,Y,X", help="Elements of the shards that Java N5 4 wrote to SRC."),
    ] = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare all values before DST can be opened.")
    ] = False,
    dry_run: DryRun = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Copy N5 or Zarr to N5 or Zarr: a dataset, a group or a container.

    If chunks and compression stay, copy the stored bytes. Sizes are in C order (z, y, x). DST can
    be opened only when it is complete.
    """
    with errors_in_one_line(debug=debug):
        options = storage_options(option)
        with progress_bar() as show:
            done = convert_all(
                source,
                destination,
                to=to,
                select=select or (),
                exclude=exclude or (),
                level=level,
                ome=ome,
                labels=labels or (),
                coords=coords,
                chunks=_sizes("--chunks", chunks),
                shards=_sizes("--shards", shards),
                compression=_compression(codec),
                shards_of_java=_sizes("--shards-of-java", shards_of_java),
                overwrite=overwrite,
                resume=resume,
                verify=verify,
                dry_run=dry_run,
                storage_options=options if "://" in source else None,
                backend=backend if "://" in source else "fsspec",
                destination_options=options if "://" in destination else None,
                destination_backend=backend if "://" in destination else "fsspec",
                scheduler=scheduler,
                n_workers=workers,
                progress=show,
            )
        _print(done)


def rechunk(
    location: Annotated[str, typer.Argument(metavar="PATH", help="A dataset or group of N5.")],
    chunks: Annotated[
        str | None, typer.Option(metavar="Z,Y,X", help="Elements of a block; or one number.")
    ] = None,
    codec: Codec = None,
    resume: Resume = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    debug: Debug = False,
) -> None:
    """Change the block size or compression of the datasets below PATH, in place.

    Write the new datasets beside the container, into .NAME.rechunk, and compare them; then each
    replaces the old one. Only for local containers that no other program is writing.
    """
    with errors_in_one_line(debug=debug):
        with progress_bar() as show:
            done = rechunk_all(
                location,
                chunks=_sizes("--chunks", chunks),
                compression=_compression(codec),
                resume=resume,
                scheduler=scheduler,
                n_workers=workers,
                progress=show,
            )
        _print(replace(done, destination=location))


def _sizes(option: str, given: str | None) -> Sequence[int] | None:
    return None if given is None else whole_numbers(option, given)


def _compression(given: str | None) -> Any:  # noqa: ANN401 - JSON, or a name
    if given is None or not given.lstrip().startswith("{"):
        return given
    try:
        return json.loads(given)
    except ValueError as err:
        raise typer.BadParameter(str(err), param_hint="--codec") from None


def _print(done: Conversion) -> None:
    table = Table.grid(padding=(0, 2))
    for array in done.arrays[:_MOST_ROWS]:
        table.add_row(*_row(array))
    screen = console()
    screen.print(table)
    if len(done.arrays) > _MOST_ROWS:
        screen.print(f"... and {len(done.arrays) - _MOST_ROWS} more")
    size = bytes_text(done.n_bytes)
    if done.dry_run:
        text = f"{done.destination}: {len(done.arrays)} arrays, {size} of elements, not written"
    else:
        checked = ", equal to the source" if done.verified else ""
        took = f"in {done.seconds:.1f} s{checked}"
        text = f"{done.destination}: {len(done.arrays)} arrays, {size}, {took}"
    screen.print(escape(text), soft_wrap=True)


_WAYS = {
    "blocks": "blocks passed through",
    "chunks": "chunks passed through",
    "shards": "chunks joined into shards",
    "values": "encoded anew",
}


def _row(array: ConvertedArray) -> Sequence[str]:
    shards = f" in shards {array.shards}" if array.shards else ""
    path = escape(array.path or "/")
    return path, str(array.shape), f"chunks {array.chunks}{shards}", _WAYS[array.way]
