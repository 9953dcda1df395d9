"""The command ``pyramid``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from n5zarr.cli.common import (
    AsJson,
    Debug,
    DryRun,
    Library,
    Options,
    Resume,
    Scheduler,
    Workers,
    console,
    errors_in_one_line,
    print_json,
    storage_options,
    whole_numbers,
)
from n5zarr.cli.progress import progress_bar
from n5zarr.store.info import bytes_text
from n5zarr.tools.pyramid.build import build_pyramid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.tools.pyramid.build import Pyramid, PyramidLevel

__all__ = ["pyramid"]

_MIB = 2**20

_S0 = Annotated[
    str, typer.Argument(metavar="PATH", help="The dataset s0 of a container, or its group.")
]
_Factors = Annotated[
    str,
    typer.Option(
        metavar="2,2,2|auto",
        help="Elements to combine along each axis, z first as 'n5zarr tree' shows shapes. "
        "auto: halve the spatial axes with the shortest voxels, never channels or time.",
    ),
]
_Levels = Annotated[
    str, typer.Option(metavar="N|auto", help="Number of levels. auto: until one is about a block.")
]
_Method = Annotated[
    Literal["auto", "mean", "mode", "median", "gaussian", "stride"],
    typer.Option(
        help="How to combine elements. auto: mode for bool and for integers of 32 and 64 bits, "
        "which are labels; otherwise mean."
    ),
]
_Convention = Annotated[
    Literal["auto", "cosem", "n5viewer", "neuroglancer", "ngff"],
    typer.Option(help="Convention for positions of levels. auto: that of s0, or cosem."),
]
_Compression = Annotated[
    str | None, typer.Option(metavar="TYPE", help="Such as gzip or zstd. Default: that of s0.")
]
_Chunks = Annotated[
    str | None,
    typer.Option(metavar="64,64,64", help="Size of a block, z first. Default: that of s0."),
]
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Remove existing levels first.")]
_MaxMemory = Annotated[
    int, typer.Option(metavar="MIB", min=1, help="Memory of all workers together, in MiB.")
]


def pyramid(
    location: _S0,
    factors: _Factors = "auto",
    levels: _Levels = "auto",
    method: _Method = "auto",
    convention: _Convention = "auto",
    compression: _Compression = None,
    chunks: _Chunks = None,
    overwrite: _Overwrite = False,
    resume: Resume = False,
    dry_run: DryRun = False,
    max_memory: _MaxMemory = 1024,
    scheduler: Scheduler = None,
    workers: Workers = None,
    as_json: AsJson = False,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Write coarser levels s1, s2, ... beside the dataset s0.

    PATH is s0 or its group. The levels appear when all are complete; you can
    resume an interrupted run. Blocks with only zeros are not written.
    """
    with errors_in_one_line(debug=debug):
        given = storage_options(option)
        with progress_bar() as show:
            made = build_pyramid(
                location,
                factors=_auto_or_numbers("--factors", factors),
                levels="auto" if levels == "auto" else _number("--levels", levels),
                method=method,
                convention=convention,
                compression=compression,
                chunks=None if chunks is None else whole_numbers("--chunks", chunks),
                overwrite=overwrite,
                resume=resume,
                dry_run=dry_run,
                max_memory=max_memory * _MIB,
                storage_options=given,
                backend=backend,
                scheduler=scheduler,
                n_workers=workers,
                progress=show,
            )
        if as_json:
            print_json(dataclasses.asdict(made))
        else:
            _print(made, dry_run=dry_run)


def _auto_or_numbers(name: str, text: str) -> Literal["auto"] | list[int]:
    return "auto" if text == "auto" else whole_numbers(name, text)


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        message = f"expected a number or auto, got {text!r}"
        raise typer.BadParameter(message, param_hint=name) from None


def _print(made: Pyramid, *, dry_run: bool) -> None:
    screen = console()
    screen.print(f"{escape(made.container)}  /{escape(made.path)}", style="bold", soft_wrap=True)
    if not made.levels:
        screen.print("s0 is small enough: no levels")
        return
    verb = "would be" if dry_run else "were"
    if made.removed:
        screen.print(f"{', '.join(made.removed)} {verb} removed")
    screen.print(f"{verb} made with {made.method}, described as {made.convention}:")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("", "shape", "of s0", "voxel size", "blocks", "size", style="dim")
    for level in made.levels:
        table.add_row(*_row(level))
    screen.print(table)


def _row(level: PyramidLevel) -> tuple[str, ...]:
    blocks, size = f"{level.n_blocks}", f"{bytes_text(level.n_bytes)} unpacked"
    if level.n_blocks_stored is not None and level.n_bytes_stored is not None:
        blocks = f"{level.n_blocks_stored} of {level.n_blocks}"
        size = bytes_text(level.n_bytes_stored)
    units = list(dict.fromkeys(unit for unit in level.units if unit))
    voxel = _list([f"{size:g}" for size in level.scale])
    return (
        level.path.rpartition("/")[2],
        _list(level.shape),
        _list(level.factors),
        f"{voxel} {units[0]}" if len(units) == 1 else voxel,
        blocks,
        size,
    )


def _list(values: Sequence[object]) -> str:
    return f"({', '.join(map(str, values))})"
