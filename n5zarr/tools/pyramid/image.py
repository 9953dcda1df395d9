"""Define an image whose levels are written: all in which N5 and OME-Zarr differ."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

import numpy as np
from zarr.abc.store import Store

from n5zarr.arrays.boxes import BoxSlices
from n5zarr.conventions.model import Axis, centre_shifts
from n5zarr.conventions.units import ratio
from n5zarr.format.compression import Compression
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.storage.interface import Storage
from n5zarr.tools.convert.target import ArrayTarget
from n5zarr.tools.jobs.nodes import check_no_links
from n5zarr.tools.pyramid.methods import Method
from n5zarr.tools.pyramid.model import ChosenLevel


@dataclass(frozen=True)
class Level:
    """A level of a pyramid; tuples in the order of the array.

    Parameters
    ----------
    path : str
        Path of the array in the storage.
    block : tuple of int
        Extent of what is written at once, a block, chunk or shard, in elements.
    documents : mapping of str to bytes, optional
        Its documents by key, and those of groups above it that may be missing; empty for the first
        level, whose documents are written already.
    shape : tuple of int
        Extent of the level.
    factors, total : tuple of int, optional
        Number of elements of the previous level, and of the first one, that become one.
    part : tuple of int, optional
        Extent of the part that is computed at once, in elements of this level.
    """

    path: str
    block: tuple[int, ...]
    documents: Mapping[str, bytes] = field(default_factory=dict)
    _: KW_ONLY
    shape: tuple[int, ...]
    factors: tuple[int, ...] = ()
    total: tuple[int, ...] = ()
    part: tuple[int, ...] = ()

    @property
    def own_documents(self) -> dict[str, bytes]:
        """Its documents without those of groups above it."""
        own = f"{self.path}/"
        return {key: data for key, data in self.documents.items() if key.startswith(own)}

    def source(self, region: BoxSlices, shape: Sequence[int]) -> BoxSlices:
        """Return the region of the previous level on which a region depends.

        Parameters
        ----------
        region : tuple of slice
            Region of this level.
        shape : tuple of int
            Extent of the previous level, in elements.
        """
        each = zip(region, self.factors, shape, strict=True)
        return tuple(slice(s.start * f, min(s.stop * f, n)) for s, f, n in each)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What levels are made of.

    Parameters
    ----------
    method : str
        How to combine elements.
    chunks : tuple of int
        Extent of a chunk, in the order of the array.
    compression : Compression, optional
        Another compression than that of the first level.
    is_chunked : bool
        Whether the user chose the chunks.
    max_entries : int
        Largest number of labels of a voxel of label multisets; no limit below 1.
    """

    method: Method
    chunks: tuple[int, ...]
    compression: Compression | None
    is_chunked: bool
    max_entries: int


@dataclass(frozen=True, kw_only=True)
class PyramidImage(ABC):
    """An image: its first level, and how others are made, listed and removed.

    Can be pickled for other processes. Tuples are in the order of the array.

    Parameters
    ----------
    storage : Storage
        The keys of the container, or hierarchy.
    group : str
        Path of the group of the levels.
    source : Level
        The first level.
    dtype : numpy.dtype
        Data type of the elements.
    chunks : tuple of int
        Extent of a chunk of the first level, in elements.
    axes : tuple of Axis
        The axes of the first level.
    convention : str
        The convention that describes the levels.
    documents : tuple of str
        Keys of the documents that a run changes, besides those of levels.
    described : mapping
        The first level, as far as its blocks depend on it.
    compression : Compression, optional
        The compression that levels have by default, if N5 knows it.
    known_method : object, optional
        The method that has made the levels which are there, if the image says so.
    """

    storage: Storage
    group: str
    source: Level
    dtype: np.dtype
    chunks: tuple[int, ...]
    axes: tuple[Axis, ...]
    convention: str
    documents: tuple[str, ...]
    described: Mapping[str, JSON]
    compression: Compression | None = None
    known_method: object = None

    def __str__(self) -> str:
        return f"{self.storage}: {self.group or '/'}"

    @property
    def store(self) -> Store:
        """The store with the stored keys, for writing."""
        return self.storage.store.with_read_only(read_only=False)

    @property
    def voxel(self) -> tuple[float | None, ...]:
        """Distance between elements along axes of space, in one unit; None for other axes."""
        axes = self.axes
        is_space = [axis.type == "space" for axis in axes]
        if not any(is_space):  # unknown names
            is_space = [axis.type == "" and axis.labels is None for axis in axes]
        unit = next((a.unit for a, is_one in zip(axes, is_space, strict=True) if is_one), None)
        return tuple(
            axis.scale * (ratio(axis.unit, unit) or 1.0) if is_one else None
            for axis, is_one in zip(axes, is_space, strict=True)
        )

    def axes_at(self, total: Sequence[int], method: Method) -> tuple[Axis, ...]:
        """Return the axes of a level.

        An element of a level is in the middle of those that it stands for, half of (factor - 1)
        elements of the first level beside the first one; with ``stride`` it is at the first one.

        Parameters
        ----------
        total : sequence of int
            Number of elements of the first level in one element of the level.
        method : str
            How to combine elements.
        """
        axes = self.axes
        shifts = centre_shifts(
            [axis.scale for axis in axes], [1] * len(total) if method == "stride" else total
        )
        return tuple(
            replace(axis, scale=axis.scale * f, translation=axis.translation + shift)
            for axis, f, shift in zip(axes, total, shifts, strict=True)
        )

    def full(self, name: str) -> str:
        """Return the path of a level."""
        return join(self.group, name)

    def name(self, level: Level) -> str:
        """Return the path of a level below the group."""
        return level.path.removeprefix(f"{self.group}/")

    @abstractmethod
    def method(self, given: str) -> Method:
        """Choose how to combine elements, see :func:`choose_method`."""

    def levels(self, chosen: Sequence[ChosenLevel], wanted: Wanted) -> list[Level]:
        """Make the levels; see :meth:`level`."""
        names = names_like(self.name(self.source), len(chosen))
        return [self.level(*each, wanted) for each in zip(names, chosen, strict=True)]

    @abstractmethod
    def level(self, name: str, chosen: ChosenLevel, wanted: Wanted) -> Level:
        """Make a level, with its documents.

        Raises
        ------
        N5UnrepresentableError
            It cannot be written or described (``kind="option"``).
        """

    @abstractmethod
    def target(self, level: Level, mode: Literal["r", "r+"]) -> ArrayTarget:
        """Open a level to read or write it, also one whose documents are not written yet."""

    @abstractmethod
    def existing(self, names: Sequence[str]) -> list[str]:
        """List the levels beside the first one, complete or not.

        Parameters
        ----------
        names : sequence of str
            Names of the levels that are to be written.
        """

    def check_removable(self, names: Sequence[str]) -> None:
        """Raise if something else would be lost with levels."""
        check_no_links(self.storage, map(self.full, names))

    @abstractmethod
    def remove(self, names: Sequence[str]) -> None:
        """Remove levels, so that none reads as wrong numbers meanwhile."""

    @abstractmethod
    def finish(self, levels: Sequence[Level], wanted: Wanted) -> None:
        """Write the documents of levels, whose blocks are complete, and list them in the group."""

    @abstractmethod
    def warn(self, levels: Sequence[Level], method: Method) -> None:
        """Warn of levels that are complete, and that other readers misunderstand."""

    @abstractmethod
    def n_bytes_stored(self, level: Level) -> int:
        """Count the bytes of the blocks of a level that is complete."""


def names_like(first: str, n: int) -> list[str]:
    """Return the paths of new levels, named like the first one.

    Examples
    --------
    >>> [names_like(name, 2)[-1] for name in ("0", "s0", "scale0/image", "10", "full")]
    ['2', 's2', 'scale2/image', 's2', 's2']
    """
    match = re.fullmatch(r"(|.*?\D)0(\D*)", first)
    before, after = match.groups() if match else (f"{first.rpartition('/')[0]}/s".lstrip("/"), "")
    return [f"{before}{k}{after}" for k in range(1, n + 1)]
