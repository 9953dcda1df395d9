"""The command ``pyramid``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Column, Table
from rich.text import Text

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.options import (
    MIB,
    Access,
    Compression,
    DryRun,
    Jobs,
    MaxMemory,
    Parts,
    Progress,
    Resume,
    whole_numbers,
)
from n5zarr.format.path import join
from n5zarr.store.info import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from n5zarr.tools.pyramid.model import Pyramid, PyramidLevel

__all__ = ["pyramid"]


def _factors(text: str) -> list[int] | Literal["auto"]:
    return "auto" if text == "auto" else whole_numbers(text)


def _levels(text: str) -> int | Literal["auto"]:
    try:
        return "auto" if text == "auto" else int(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number or auto, got {text!r}") from None


_To = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP",
        help="Copy the dataset to s0 of this group, and write the levels there: a path in the same "
        "container, or a location such as out.n5/em or ./out.",
    ),
]
_Factors = Annotated[
    Any,
    typer.Option(
        parser=_factors,
        metavar="2,2,2|auto",
        help="Elements to combine along each axis, z first as 'n5zarr tree' shows shapes. "
        "auto: halve the spatial axes with the shortest voxels, never channels or time.",
    ),
]
_Levels = Annotated[
    Any,
    typer.Option(
        parser=_levels,
        metavar="N|auto",
        help="Number of levels. auto: until one is about a block.",
    ),
]
_Method = Annotated[
    Literal["auto", "mean", "mode", "median", "gaussian", "stride", "multiset"],
    typer.Option(
        help="How to combine elements. auto: mode for bool and for integers of 32 and 64 "
        "bits, which are labels; multiset for label multisets; otherwise mean."
    ),
]
_Convention = Annotated[
    Literal["auto", "cosem", "n5viewer", "neuroglancer", "ngff"],
    typer.Option(help="Convention for positions of levels. auto: that of s0, or cosem."),
]
_Chunks = Annotated[
    Any,
    typer.Option(
        parser=whole_numbers,
        metavar="64,64,64",
        help="Size of a block, z first. Default: that of s0.",
    ),
]
_MaxNumEntries = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="For label multisets: keep the N most frequent labels of a voxel. Default: all.",
    ),
]


def pyramid(
    location: Annotated[
        str,
        typer.Argument(
            metavar="LOCATION",
            help="The dataset s0 of a container, or its group; or an image of OME-Zarr. With --to, "
            "any dataset.",
        ),
    ],
    *,
    progress: Progress,
    to: _To = None,
    factors: _Factors = "auto",
    levels: _Levels = "auto",
    method: _Method = "auto",
    convention: _Convention = "auto",
    compression: Compression = None,
    chunks: _Chunks = None,
    max_num_entries: _MaxNumEntries = -1,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove existing levels first.")
    ] = False,
    resume: Resume = False,
    dry_run: DryRun = False,
    max_memory: MaxMemory = 1024,
    parts: Parts,
    jobs: Jobs,
    access: Access,
) -> Result:
    """Write coarser levels s1, s2, ... beside the dataset s0.

    LOCATION is s0 or its group; of OME-Zarr 0.4 and 0.5, the image or its first level. Any other
    dataset of N5 is copied to s0 with --to. The levels appear when all are complete; you can
    resume an interrupted run. Blocks with only zeros are not written.
    """
    made = n5zarr.build_pyramid(
        location,
        to=to,
        factors=factors,
        levels=levels,
        method=method,
        convention=convention,
        compression=compression,
        chunks=chunks,
        max_num_entries=max_num_entries,
        overwrite=overwrite,
        resume=resume,
        dry_run=dry_run,
        max_memory=max_memory * MIB,
        progress=progress,
        **parts.keywords(),
        **jobs.keywords(),
        **access.keywords(),
    )
    verb = "would be" if dry_run else "were" if parts.part is None else "are being"
    return Result(value=made, text=_text(made, verb, parts))


def _text(made: Pyramid, verb: str, parts: Parts) -> Iterator[RenderableType]:
    yield Text(f"{made.container}  /{made.path}", "bold")
    if made.source:
        one = verb.replace("were", "was")
        yield f"{made.source} {one} copied to /{join(made.path, 's0')}"
    if not made.levels:
        yield "s0 is small enough: no levels"
        return
    if made.removed:
        yield f"{', '.join(made.removed)} {verb} removed"
    yield f"{verb} made with {made.method}, described as {made.convention}:"
    table = Table.grid(*(Column(overflow="fold") for _ in range(6)), padding=(0, 2, 0, 0))
    table.add_row("", "shape", "of s0", "voxel size", "blocks", "size", style="dim")
    for level in made.levels:
        table.add_row(*_row(level))
    yield table
    if parts.part is not None:
        yield parts.next_step


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
