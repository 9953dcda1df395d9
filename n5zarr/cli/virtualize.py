"""The commands ``virtualize`` and ``sidecar``."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.messages import counted
from n5zarr.cli.options import Access, AsJson, Jobs, Location, Progress, name_and_value
from n5zarr.store.info import bytes_text
from n5zarr.tools.virtualize.references import MAX_INLINED

__all__ = ["sidecar", "virtualize"]

_SHOWN = 10  # datasets that are named one by one

_Format = Annotated[
    Literal["json", "parquet", "icechunk"] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="json, parquet or icechunk. Default: by suffix of DESTINATION.",
    ),
]
_Coords = Annotated[
    bool,
    typer.Option(
        "--coords/--no-coords",
        help="Write axes as coordinates, as xarray needs them; or keep the path of each dataset.",
    ),
]
_ChunkGrid = Annotated[
    Literal["regular", "rectilinear"],
    typer.Option(
        metavar="GRID",
        help="rectilinear: also refer to truncated blocks, if readers support it.",
    ),
]
_ZarrFormat = Annotated[
    Literal["3", "2"] | None,
    typer.Option(metavar="3|2", help="Zarr format of JSON. Default: 2; with rectilinear 3."),
]
_DestinationOption = Annotated[
    list[Any] | None,
    typer.Option(
        parser=name_and_value,
        metavar="NAME=VALUE",
        help="For the URL of DESTINATION. May be repeated.",
    ),
]


def virtualize(
    location: Location,
    destination: Annotated[
        str, typer.Argument(metavar="DESTINATION", help="*.json, *.parq or *.icechunk")
    ],
    *,
    progress: Progress,
    form: _Format = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where readers find the container. Default: LOCATION."),
    ] = None,
    coords: _Coords = True,
    chunk_grid: _ChunkGrid = "regular",
    zarr_format: _ZarrFormat = None,
    max_inlined: Annotated[
        int, typer.Option(metavar="BYTES", min=0, help="Limit for copied chunks.")
    ] = MAX_INLINED,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="Message of the Icechunk commit.")
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace DESTINATION; with Icechunk, in a new commit."),
    ] = False,
    jobs: Jobs,
    access: Access,
    destination_option: _DestinationOption = None,
) -> Result:
    """Write references to blocks, so that others can read the container as Zarr.

    zarr and xarray read them without n5zarr: through fsspec, as kerchunk references (*.json,
    *.parq), or through Icechunk. Blocks stay where they are; blocks that are not Zarr chunks
    (truncated, lz4, text) are copied.
    """
    os.environ.setdefault("ICECHUNK_LOG", "error")  # it warns of every local repository
    done = n5zarr.virtualize(
        location,
        destination,
        format=form,
        url=url,
        coords=coords,
        chunk_grid=chunk_grid,
        zarr_format={"3": 3, "2": 2, None: None}[zarr_format],
        max_inlined=max_inlined,
        message=message,
        overwrite=overwrite,
        destination_options=dict(destination_option or ()) or None,
        progress=progress,
        **jobs.keywords(),
        **access.keywords(),
    )
    referenced, inlined = bytes_text(done.n_bytes_referenced), bytes_text(done.n_bytes_inlined)
    text = [
        f"{done.path}: {counted(done.n_arrays, 'array')}",
        f"{done.n_referenced:>12} chunks in blocks, {referenced}",
        f"{done.n_inlined:>12} chunks copied, {inlined}",
        f"{done.n_missing:>12} chunks without block",
    ]
    return Result(value=done, text=text)


def sidecar(
    location: Location,
    *,
    as_json: AsJson,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the files of this command.")
    ] = False,
    access: Access,
) -> Result:
    """Write zarr.json beside each document, so that the directory is Zarr, too.

    zarr reads it if n5zarr or zarr-n5 is installed; shapes are in N5 order (x, y, z). Run the
    command again when datasets have changed. It never changes a zarr.json of another program.
    """
    done = n5zarr.sidecar(location, remove=remove, **access.keywords())
    parts = [f"{done.n_removed} removed"] if done.n_removed or remove else []
    if not remove:
        parts = [f"{done.n_written} zarr.json written", f"{done.n_unchanged} unchanged", *parts]
    omitted = [f"{path or '/'}: omitted: {reason}" for path, reason in done.left_out.items()]
    if len(omitted) > _SHOWN:
        omitted[_SHOWN:] = [f"{len(omitted) - _SHOWN} more omitted (--json names all)"]
    text = [f"{done.container}: {', '.join(parts)}"]
    return Result(value=done, text=text, warnings=[] if as_json else omitted)
