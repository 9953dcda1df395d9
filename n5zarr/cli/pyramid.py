"""The command ``pyramid``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Column, Table
from rich.text import Text

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.messages import next_step
from n5zarr.cli.options import options_of
from n5zarr.format.path import join
from n5zarr.store.info import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from n5zarr.tools.pyramid.model import Pyramid, PyramidLevel

__all__ = ["pyramid"]


@options_of(n5zarr.build_pyramid)
def pyramid(**given: Any) -> Result:
    """Write coarser levels s1, s2, ... beside the dataset s0.

    LOCATION is s0 or its group; of OME-Zarr 0.4 and 0.5, the image or its first level. Any other
    dataset of N5 is copied to s0 with --to. The levels appear when all are complete; you can
    resume an interrupted run. Blocks with only zeros are not written.
    """
    made = n5zarr.build_pyramid(**given)
    part = given.get("part")
    verb = "would be" if given["dry_run"] else "were" if part is None else "are being"
    return Result(value=made, text=_text(made, verb, part))


def _text(made: Pyramid, verb: str, part: str | None) -> Iterator[RenderableType]:
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
    if part is not None:
        yield next_step(part)


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
