"""The commands that copy and convert: ``convert``, ``rechunk``, ``download``, ``nwb convert``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Column, Table

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.messages import counted
from n5zarr.cli.options import (
    MIB,
    Access,
    Compression,
    DryRun,
    Jobs,
    MaxMemory,
    Node,
    Overwrite,
    Parts,
    Progress,
    Resume,
    whole_numbers,
)
from n5zarr.store.info import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from n5zarr import Conversion

__all__ = ["convert", "convert_nwb", "download", "rechunk"]

_MOST_ROWS = 20

_Chunks = Annotated[
    Any,
    typer.Option(parser=whole_numbers, metavar="Z,Y,X", help="Elements of a chunk; or one number."),
]

_Format = Annotated[
    Literal["zarr", "zarr2", "n5", "ome-zarr"] | None,
    typer.Option(
        help="Format of DESTINATION: Zarr v3, Zarr v2, N5, or as --ome. Default: by its suffix."
    ),
]
_OmeVersion = Annotated[
    Literal["0.4", "0.5", "0.6rc0"] | None,
    typer.Option(
        help="With --ome, 0.4 is Zarr v2, 0.5 is Zarr v3, 0.6rc0 is a draft with coordinate "
        "systems, in Zarr v3. Default: that of --to, or 0.5; of a project its own, or 0.4, which "
        "each BigStitcher reads."
    ),
]
_PainteraLabels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB",
        help="To N5, integers that become Paintera's label multisets. May be repeated.",
    ),
]
_Shards = Annotated[
    Any,
    typer.Option(parser=whole_numbers, metavar="Z,Y,X", help="Elements of a shard; or one number."),
]


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="N5, Zarr, HDF5, TIFF, CZI, ..., or BigDataViewer's XML."
        ),
    ],
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION", help="Where to write the copy; an XML for a whole project."
        ),
    ],
    *,
    progress: Progress,
    to: _Format = None,
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
        bool, typer.Option("--ome", help="Write OME-Zarr: images with axes, units and scale.")
    ] = False,
    ome_version: _OmeVersion = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="With --ome, images that are labels. May be repeated."),
    ] = None,
    paintera_labels: _PainteraLabels = None,
    coords: Annotated[
        bool, typer.Option("--coords", help="Write coordinates of axes as arrays, for xarray.")
    ] = False,
    chunks: _Chunks = None,
    shards: _Shards = None,
    compression: Compression = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compare all values before DESTINATION can be opened."),
    ] = False,
    dry_run: DryRun = False,
    max_memory: MaxMemory = 1024,
    parts: Parts,
    jobs: Jobs,
    access: Access,
) -> Result:
    """Copy N5, Zarr, HDF5, TIFF or CZI to N5 or Zarr: a dataset, a group or a container.

    If chunks and compression stay, copy the stored bytes. Sizes are in C order (z, y, x).
    DESTINATION can be opened only when it is complete.
    """
    options = access.keywords()
    of_url: dict[str, Any] = {"storage_options": None, "backend": None}
    of_source = options if "://" in source else of_url
    of_destination = options if "://" in destination else of_url
    done = n5zarr.convert(
        source,
        destination,
        to=to,
        select=select or (),
        exclude=exclude or (),
        level=level,
        ome=ome,
        ome_version=ome_version,
        labels=labels or (),
        paintera_labels=paintera_labels or (),
        coords=coords,
        chunks=chunks,
        shards=shards,
        compression=compression,
        overwrite=overwrite,
        resume=resume,
        verify=verify,
        dry_run=dry_run,
        **of_source,
        destination_options=of_destination["storage_options"],
        destination_backend=of_destination["backend"],
        max_memory=max_memory * MIB,
        progress=progress,
        **parts.keywords(),
        **jobs.keywords(),
    )
    return Result(value=done, text=_text(done, parts))


def rechunk(
    location: Annotated[str, typer.Argument(metavar="LOCATION", help="A dataset or group of N5.")],
    *,
    progress: Progress,
    chunks: _Chunks = None,
    compression: Compression = None,
    resume: Resume = False,
    parts: Parts,
    jobs: Jobs,
) -> Result:
    """Change the block size or compression of the datasets below LOCATION, in place.

    Write the new datasets beside the container, into .NAME.rechunk, and compare them; then each
    replaces the old one. Only for local containers that no other program is writing.
    """
    done = n5zarr.rechunk(
        location,
        chunks=chunks,
        compression=compression,
        resume=resume,
        progress=progress,
        **parts.keywords(),
        **jobs.keywords(),
    )
    done = replace(done, destination=location)
    return Result(value=done, text=_text(done, parts))


def _text(done: Conversion, parts: Parts) -> Iterator[RenderableType]:
    table = Table.grid(*(Column(overflow="fold") for _ in range(4)), padding=(0, 2))
    for array in done.arrays[:_MOST_ROWS]:
        shards = f" in shards {array.shards}" if array.shards else ""
        chunks = f"chunks {array.chunks}{shards}"
        table.add_row(array.path or "/", str(array.shape), chunks, _WAYS[array.way])
    yield table
    if len(done.arrays) > _MOST_ROWS:
        yield f"... and {len(done.arrays) - _MOST_ROWS} more"
    text = f"{done.destination}: {counted(len(done.arrays), 'array')}, {bytes_text(done.n_bytes)}"
    if done.dry_run:
        yield f"{text} of elements, not written"
    elif parts.part is not None:
        n_written = sum(array.n_written for array in done.arrays)
        yield f"{done.destination}: {counted(n_written, 'chunk')} written, in {done.seconds:.1f} s"
        yield parts.next_step
    else:
        checked = ", equal to the source" if done.verified else ""
        yield f"{text}, in {done.seconds:.1f} s{checked}"


_WAYS = {
    "blocks": "blocks passed through",
    "chunks": "chunks passed through",
    "shards": "chunks joined into shards",
    "values": "encoded anew",
}


def _box(text: str) -> list[slice]:
    """Parse ``0:10,:,5:20``."""
    parts = [re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", part) for part in text.split(",")]
    if None in parts:
        raise typer.BadParameter(f"expected z0:z1,y0:y1,x0:x1 in elements, got {text!r}")
    ends = [[int(end) if end else None for end in part.groups()] for part in parts if part]
    return [slice(start, stop) for start, stop in ends]


def download(
    location: Node,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="New local container, or one from an earlier run.")
    ],
    *,
    progress: Progress,
    path: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Dataset or group below LOCATION. May be repeated."),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(metavar="GLOB", help="Datasets or groups, such as 'em/s*'."),
    ] = None,
    box: Annotated[
        Any,
        typer.Option(
            parser=_box,
            metavar="BOX",
            help="Elements in C order: z0:z1,y0:y1,x0:x1; : selects all.",
        ),
    ] = None,
    dry_run: DryRun = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the datasets from DIR first.")
    ] = False,
    access: Access,
) -> Result:
    """Copy a part of a container to local files, as N5, byte for byte.

    Datasets keep their paths and dimensions; blocks outside the BOX are missing and read as 0. The
    documents of the parent groups are copied, too. In a pyramid the BOX counts elements of the
    largest level; the other levels use the same physical region.

    Blocks that exist with the same size are not loaded again: repeat an interrupted command to
    continue, or download another BOX into the same DIR.
    """
    done = n5zarr.download(
        location,
        directory,
        paths=path or (),
        select=select,
        box=box,
        dry_run=dry_run,
        overwrite=overwrite,
        progress=progress,
        **access.keywords(),
    )
    loaded = "would be loaded" if dry_run else "loaded"
    n_there = done.n_blocks - done.n_loaded
    there = f"; {n_there} were there" if n_there else ""
    text = (
        f"{done.container}: {done.n_loaded} of {done.n_blocks} blocks {loaded}, "
        f"{bytes_text(done.n_bytes_loaded)}, of {counted(len(done.datasets), 'dataset')}{there}"
    )
    return Result(value=done, text=[text])


def convert_nwb(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="NWB file as HDF5, N5 or Zarr.")],
    destination: Annotated[
        str, typer.Argument(metavar="DESTINATION", help="*.n5, *.zarr or *.nwb (HDF5).")
    ],
    *,
    progress: Progress,
    to: Annotated[
        Literal["hdf5", "n5", "zarr"] | None,
        typer.Option(help="Format of DESTINATION. Default: chosen by its suffix."),
    ] = None,
    overwrite: Overwrite = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify", help="Compare DESTINATION with SOURCE, value by value."
        ),
    ] = True,
) -> Result:
    """Copy an NWB file to another format.

    DESTINATION appears only when it is complete and verified: every group, dataset, link,
    attribute, data type, value and specification. Targets of links into other files are copied.
    """
    from n5zarr import hdmf  # noqa: PLC0415 - the extra may be missing

    hdmf.convert(source, destination, to=to, overwrite=overwrite, verify=verify, progress=progress)
    checked = f"equal to {source}" if verify else "not compared"
    value = {"source": source, "destination": destination, "verified": verify}
    return Result(value=value, text=[f"{destination}: written, {checked}"])
