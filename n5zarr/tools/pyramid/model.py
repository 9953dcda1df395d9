"""Define what a pyramid is made of, and the options that choose it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.tools.pyramid.methods import Method

__all__ = ["Pyramid", "PyramidLevel", "PyramidOptions"]


@dataclass(frozen=True, kw_only=True)
class PyramidOptions:
    """The options of :func:`n5zarr.build_pyramid`; None for what is chosen automatically."""

    factors: Sequence[int] | None
    levels: int | None
    method: Literal["auto"] | Method
    convention: str
    compression: Mapping[str, JSON] | str | None
    chunks: Sequence[int] | None
    max_num_entries: int
    overwrite: bool
    resume: bool
    dry_run: bool
    max_memory: int
    run: RunOptions


@dataclass(frozen=True, kw_only=True)
class PyramidLevel:
    """A level that was written; tuples have one value for each axis, in the order of the array.

    Parameters
    ----------
    path : str
        Path of the dataset, below the root of the container.
    shape, chunks : tuple of int
        Extent of the level and of a block, in elements.
    factors : tuple of int
        Number of elements of ``s0`` that become one, along each axis.
    scale, translation : tuple of float
        Distance of elements and position of the first one, in ``units``.
    units : tuple of str or None
        Units of the axes, those of ``s0``.
    n_blocks : int
        Number of blocks in the grid.
    n_blocks_stored : int or None
        Number of blocks that exist: the others would be empty. None if nothing was written.
    n_bytes : int
        Size of the elements, before compression.
    n_bytes_stored : int or None
        Size of the stored blocks. None if nothing was written.
    """

    path: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    factors: tuple[int, ...]
    scale: tuple[float, ...]
    translation: tuple[float, ...]
    units: tuple[str | None, ...]
    n_blocks: int
    n_blocks_stored: int | None
    n_bytes: int
    n_bytes_stored: int | None


@dataclass(frozen=True, kw_only=True)
class Pyramid:
    """The result of :func:`build_pyramid`: what was written, or would be with ``dry_run``.

    Parameters
    ----------
    container : str
        Name of the container.
    path : str
        Path of the group of the levels.
    method : str
        Method that combined elements.
    convention : str
        Convention that describes the levels.
    levels : tuple of PyramidLevel
        The new levels, the finest first; empty if ``s0`` needs none.
    removed : tuple of str
        Names of earlier levels that were removed.
    source : str, optional
        The dataset that was copied to ``s0``; empty if ``s0`` was there.
    """

    container: str
    path: str
    method: Method
    convention: str
    levels: tuple[PyramidLevel, ...]
    removed: tuple[str, ...]
    source: str = ""
