"""The commands ``virtualize`` and ``sidecar``."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated, Literal

import typer
from rich.markup import escape

import n5zarr
from n5zarr.cli.common import (
    AsJson,
    Debug,
    Library,
    Location,
    Options,
    Scheduler,
    Workers,
    complain,
    console,
    errors_in_one_line,
    print_json,
    storage_options,
)
from n5zarr.cli.progress import progress_bar
from n5zarr.store.info import bytes_text
from n5zarr.tools.virtualize.references import MAX_INLINED

__all__ = ["sidecar", "virtualize"]

_SHOWN = 10  # datasets that are named one by one


_Out = Annotated[str, typer.Argument(metavar="OUT", help="*.json, *.parq or *.icechunk")]
_Format = Annotated[
    Literal["json", "parquet", "icechunk"] | None,
    typer.Option(
        "--format", metavar="FORMAT", help="json, parquet or icechunk. Default: by suffix of OUT."
    ),
]
_Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where readers find the container. Default: PATH."),
]
_Coords = Annotated[
    bool,
    typer.Option(
        "--coords/--no-coords",
        help="Write axes as coordinates, as xarray needs them; or keep the path of each dataset.",
    ),
]
_Grid = Annotated[
    Literal["regular", "rectilinear"],
    typer.Option(
        metavar="GRID", help="rectilinear: also refer to truncated blocks, if readers support it."
    ),
]
_ZarrFormat = Annotated[
    Literal["3", "2"] | None,
    typer.Option(metavar="3|2", help="Zarr format of JSON. Default: 2; with rectilinear 3."),
]
_Inlined = Annotated[int, typer.Option(metavar="BYTES", min=0, help="Limit for copied chunks.")]
_Message = Annotated[
    str | None, typer.Option("--message", "-m", help="Message of the Icechunk commit.")
]
_Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace OUT; with Icechunk, in a new commit.")
]
_OutOptions = Annotated[
    list[str] | None,
    typer.Option("--out-option", metavar="NAME=VALUE", help="For the URL of OUT. May be repeated."),
]


def virtualize(
    location: Location,
    out: _Out,
    form: _Format = None,
    url: _Url = None,
    coords: _Coords = True,
    chunk_grid: _Grid = "regular",
    zarr_format: _ZarrFormat = None,
    max_inlined: _Inlined = MAX_INLINED,
    message: _Message = None,
    overwrite: _Overwrite = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    option: Options = None,
    out_option: _OutOptions = None,
    backend: Library = "fsspec",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write references to blocks, so that others can read the container as Zarr.

    zarr and xarray read them without n5zarr: through fsspec, as kerchunk
    references (*.json, *.parq), or through Icechunk. Blocks stay where they
    are; blocks that are not Zarr chunks (truncated, lz4, text) are copied.
    """
    os.environ.setdefault("ICECHUNK_LOG", "error")  # it warns of every local repository
    with errors_in_one_line(debug=debug), progress_bar() as show:
        written = n5zarr.virtualize(
            location,
            out,
            format=form,
            url=url,
            coords=coords,
            chunk_grid=chunk_grid,
            zarr_format={"3": 3, "2": 2, None: None}[zarr_format],
            max_inlined=max_inlined,
            message=message,
            overwrite=overwrite,
            storage_options=storage_options(option),
            backend=backend,
            out_options=storage_options(out_option),
            scheduler=scheduler,
            n_workers=workers,
            progress=show,
        )
    if as_json:
        print_json(asdict(written))
    else:
        _print_written(written)


def _print_written(written: n5zarr.Virtualization) -> None:
    screen = console()
    screen.print(
        f"{escape(written.path)}: {written.n_arrays} array{'s' * (written.n_arrays != 1)}",
        soft_wrap=True,
    )
    referenced, inlined = written.n_bytes_referenced, written.n_bytes_inlined
    for n, text in (
        (written.n_referenced, f"chunks in blocks, {bytes_text(referenced)}"),
        (written.n_inlined, f"chunks copied, {bytes_text(inlined)}"),
        (written.n_missing, "chunks without block"),
    ):
        screen.print(f"{n:>12} {escape(text)}", soft_wrap=True)


def sidecar(
    location: Location,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the files of this command.")
    ] = False,
    option: Options = None,
    backend: Library = "fsspec",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write zarr.json beside each document, so that the directory is Zarr, too.

    zarr reads it if n5zarr or zarr-n5 is installed; shapes are in N5 order
    (x, y, z). Run the command again when datasets have changed. It never
    changes a zarr.json of another program.
    """
    with errors_in_one_line(debug=debug):
        done = n5zarr.sidecar(
            location, remove=remove, storage_options=storage_options(option), backend=backend
        )
    if as_json:
        print_json(asdict(done))
        return
    parts = [f"{done.n_removed} removed"] if done.n_removed or remove else []
    if not remove:
        parts = [f"{done.n_written} zarr.json written", f"{done.n_unchanged} unchanged", *parts]
    console().print(escape(f"{done.container}: {', '.join(parts)}"), soft_wrap=True)
    for path, reason in list(done.left_out.items())[:_SHOWN]:
        complain("warning", f"{path or '/'}: omitted: {reason}")
    if len(done.left_out) > _SHOWN:
        complain("warning", f"{len(done.left_out) - _SHOWN} more omitted (--json names all)")
