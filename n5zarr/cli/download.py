"""The command ``download``."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

import n5zarr
from n5zarr.cli.common import (
    AsJson,
    Debug,
    DryRun,
    Library,
    Options,
    errors_in_one_line,
    print_json,
    say,
    storage_options,
)
from n5zarr.cli.progress import progress_bar
from n5zarr.store.info import bytes_text

__all__ = ["download"]


def download(
    source: Annotated[
        str, typer.Argument(metavar="URL", help="A container, or a group or dataset in one.")
    ],
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="New local container, or one from an earlier run.")
    ],
    path: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Dataset or group below URL. May be repeated."),
    ] = None,
    select: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Datasets or groups, such as 'em/s*'.")
    ] = None,
    box: Annotated[
        str | None,
        typer.Option(metavar="BOX", help="Elements in C order: z0:z1,y0:y1,x0:x1; : selects all."),
    ] = None,
    dry_run: DryRun = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the datasets from DIR first.")
    ] = False,
    as_json: AsJson = False,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Copy a part of a container to local files, as N5, byte for byte.

    Datasets keep their paths and dimensions; blocks outside the BOX are missing and read as 0. The
    documents of the parent groups are copied, too. In a pyramid the BOX counts elements of the
    largest level; the other levels use the same physical region.

    Blocks that exist with the same size are not loaded again: repeat an interrupted command to
    continue, or download another BOX into the same DIR.
    """
    with errors_in_one_line(debug=debug):
        with progress_bar() as show:
            done = n5zarr.download(
                source,
                directory,
                paths=path or (),
                select=select,
                box=_parsed(box),
                dry_run=dry_run,
                overwrite=overwrite,
                storage_options=storage_options(option),
                backend=backend,
                progress=show,
            )
        if as_json:
            print_json(asdict(done))
        else:
            loaded = "would be loaded" if dry_run else "loaded"
            n_there = done.n_blocks - done.n_loaded
            there = f"; {n_there} were there" if n_there else ""
            datasets = f"{len(done.datasets)} dataset{'s' if len(done.datasets) > 1 else ''}"
            say(
                f"{done.container}: {done.n_loaded} of {done.n_blocks} blocks {loaded}, "
                f"{bytes_text(done.n_bytes_loaded)}, of {datasets}{there}"
            )


def _parsed(box: str | None) -> list[slice] | None:
    """Parse ``0:10,:,5:20``."""
    if box is None:
        return None
    parts = [re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", part) for part in box.split(",")]
    if None in parts:
        message = f"expected z0:z1,y0:y1,x0:x1 in elements, got {box!r}"
        raise typer.BadParameter(message, param_hint="--box")
    ends = [[int(end) if end else None for end in part.groups()] for part in parts if part]
    return [slice(start, stop) for start, stop in ends]
