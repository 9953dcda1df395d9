"""Define what a pyramid is made of, and choose its levels: their number and factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Literal, Self

from n5zarr.container.options import require
from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.tools.jobs.run import RunOptions
from n5zarr.tools.pyramid.methods import Method

_ALIKE = math.sqrt(2)  # voxel sizes closer to each other than this are halved together
_SMALL = 64  # elements along an axis that need no coarser level, for any block size
_MOST = 2**53  # elements of s0: attributes are numbers of 64 bits


@dataclass(frozen=True, kw_only=True)
class PyramidOptions:
    """The options of :func:`n5zarr.build_pyramid`; None for what is chosen automatically."""

    factors: Sequence[int] | None
    levels: int | None
    method: Literal["auto"] | Method
    run: RunOptions
    max_memory: int
    convention: str = "auto"
    compression: Mapping[str, JSON] | str | None = None
    chunks: Sequence[int] | None = None
    max_num_entries: int = -1
    overwrite: bool = False
    resume: bool = False
    dry_run: bool = False

    @classmethod
    def of(
        cls,
        *,
        factors: Sequence[int] | str,
        levels: int | str,
        chunks: Sequence[int] | None = None,
        max_num_entries: int = -1,
        **others: Any,  # noqa: ANN401 - see above
    ) -> Self:
        """Check the numbers that a user gives.

        Raises
        ------
        N5UnrepresentableError
            They are no whole numbers (``kind="option"``).
        """
        each, one = "a whole number for each axis", "a number"
        auto = ", or 'auto'"
        return cls(
            factors=None if _is_auto(factors) else _integers("factors", factors, each + auto),
            levels=None if _is_auto(levels) else _integers("levels", [levels], one + auto)[0],
            chunks=None if chunks is None else _integers("chunks", chunks, each),
            max_num_entries=_integers("max_num_entries", [max_num_entries], one)[0],
            **others,
        )


def _is_auto(given: object) -> bool:
    return isinstance(given, str) and given == "auto"


def _integers(name: str, values: Sequence[object] | str, expected: str) -> tuple[int, ...]:
    try:
        return tuple(index(value) for value in values)  # type: ignore[arg-type] # raises TypeError
    except TypeError as err:
        raise option_error(f"{name}: expected {expected}, got {values!r}") from err


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

    def __repr__(self) -> str:
        levels = ", ".join(f"{each.path} {each.shape}" for each in self.levels) or "no levels"
        return f"<Pyramid of {self.container} /{self.path}: {levels}; {self.method}>"


# ---------------------------------------------------------------------- levels


@dataclass(frozen=True)
class ChosenLevel:
    """A level of a pyramid; all tuples in the order of the array.

    Parameters
    ----------
    factors : tuple of int
        Number of elements of the previous level that become one, along each axis.
    total : tuple of int
        Number of elements of ``s0`` that become one.
    shape : tuple of int
        Extent in elements: that of the previous level, divided by the factors and rounded up.
    """

    factors: tuple[int, ...]
    total: tuple[int, ...]
    shape: tuple[int, ...]


def choose_levels(
    shape: Sequence[int],
    block: Sequence[int],
    voxel: Sequence[float | None],
    *,
    factors: Sequence[int] | None = None,
    n_levels: int | None = None,
) -> list[ChosenLevel]:
    """Choose the levels below ``s0``.

    Parameters
    ----------
    shape : sequence of int
        Extent of ``s0``, in elements. It and all that follows are in the order of the array.
    block : sequence of int
        Extent of a block, in elements.
    voxel : sequence of float or None
        Distance of elements along axes of space, in one unit; None for others, which stay.
    factors : sequence of int, optional
        The same for each level. By default 2 along the axes with the shortest voxels, until all
        voxels have about the same size; then 2 along all axes.
    n_levels : int, optional
        How many; by default until one is at most a block, or 64 elements, along each such axis.

    Returns
    -------
    list of ChosenLevel
        The finest first.

    Raises
    ------
    N5UnrepresentableError
        The factors do not fit the shape, or there are too many levels (``kind="option"``).

    Examples
    --------
    >>> for level in choose_levels((40, 960, 1280), (16, 64, 64), (20.0, 8.0, 8.0), n_levels=3):
    ...     print(level.factors, level.total, level.shape)
    (1, 2, 2) (1, 2, 2) (40, 480, 640)
    (2, 2, 2) (2, 4, 4) (20, 240, 320)
    (2, 2, 2) (4, 8, 8) (10, 120, 160)
    """
    _check(factors, n_levels, len(shape))
    levels = [ChosenLevel((1,) * len(shape), (1,) * len(shape), tuple(shape))]
    sizes = list(voxel)
    wanted = [f > 1 for f in factors] if factors else [v is not None for v in voxel]
    while len(levels) - 1 != n_levels:
        last = levels[-1]
        if n_levels is None and _is_small(last.shape, block, wanted):
            break
        by = tuple(factors) if factors else _halved(last.shape, sizes)
        coarser = _coarser(last, by)
        n = len(levels) - 1
        require(
            coarser.shape != last.shape,
            f"levels: expected at most {n}, got {n_levels}: s{n} has the shape {last.shape}",
        )
        sizes = [None if s is None else s * f for s, f in zip(sizes, by, strict=True)]
        levels.append(coarser)
    return levels[1:]


def _is_small(shape: Sequence[int], block: Sequence[int], wanted: Sequence[bool]) -> bool:
    """Whether the axes to be downsampled are at most as long as a block, or 64 elements."""
    triples = zip(shape, block, wanted, strict=True)
    return all(n <= max(size, _SMALL) for n, size, is_one in triples if is_one)


def _coarser(level: ChosenLevel, by: tuple[int, ...]) -> ChosenLevel:
    """Combine elements of a level."""
    total = tuple(t * f for t, f in zip(level.total, by, strict=True))
    require(
        max(total) <= _MOST, f"factors: expected at most 2**53 elements of s0 for one, got {total}"
    )
    return ChosenLevel(by, total, tuple(-(-n // f) for n, f in zip(level.shape, by, strict=True)))


def _halved(shape: Sequence[int], voxel: Sequence[float | None]) -> tuple[int, ...]:
    """Return factors that halve the spatial axes with the shortest voxels and several elements."""
    known = {i: abs(v) for i, v in enumerate(voxel) if v is not None and shape[i] > 1}
    shortest = min(known.values(), default=0.0)
    return tuple(
        2 if i in known and known[i] <= _ALIKE * shortest else 1 for i in range(len(shape))
    )


def _check(factors: Sequence[int] | None, n_levels: int | None, ndim: int) -> None:
    if factors is not None:
        require(
            len(factors) == ndim and min(factors) >= 1 and max(factors) >= 2,
            f"factors: expected {ndim}, one for each axis in the order of the array, of at least "
            f"1, and one above 1, got {list(factors)}",
        )
    require(
        n_levels is None or n_levels >= 1,
        f"levels: expected 'auto', or a number above 0, got {n_levels}",
    )
