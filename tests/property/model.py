"""Model a container in numpy and dicts, with the values that every reader must return.

Blocks are kept as they are stored, not only their values: a block at the end of an axis is as large
as the array was when it was written, which shows when the array grows again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

type Box = tuple[slice, ...]
type Coords = tuple[int, ...]


def is_fill(values: np.ndarray, fill: Any) -> bool:
    """Return whether all elements are the fill value, which zarr does not store; NaN is NaN."""
    return bool(np.array_equal(values, np.broadcast_to(fill, values.shape), equal_nan=True))


@dataclass
class Dataset:
    """An array: tuples are in the order of numpy."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype
    compression: dict[str, Any]
    fill: Any = 0
    blocks: dict[Coords, np.ndarray] = field(default_factory=dict)

    @property
    def grid(self) -> tuple[int, ...]:
        return self.grid_at(self.shape)

    def grid_at(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-(-n // c) for n, c in zip(shape, self.chunks, strict=True))

    def extent(self, coords: Coords) -> tuple[int, ...]:
        """Return the part of a chunk that is inside the array."""
        each = zip(self.shape, self.chunks, coords, strict=True)
        return tuple(min(c, n - at * c) for n, c, at in each)

    def _parts(self, box: Box) -> Iterator[tuple[Coords, Box, Box]]:
        """Cut a box at the blocks: coordinates, where in the block, where in the box."""
        ranges = [
            range(b.start // c, -(-b.stop // c)) for b, c in zip(box, self.chunks, strict=True)
        ]
        for coords in product(*ranges):
            inside, outside = [], []
            for b, c, at in zip(box, self.chunks, coords, strict=True):
                start, stop = max(b.start, at * c), min(b.stop, (at + 1) * c)
                inside.append(slice(start - at * c, stop - at * c))
                outside.append(slice(start - b.start, stop - b.start))
            yield coords, tuple(inside), tuple(outside)

    def write(self, box: Box, values: np.ndarray, fill: Any) -> None:
        """Write a box that is inside the array, as zarr does: blocks of fill values are removed.

        The fill value is that of whoever writes, which others may have changed meanwhile.
        """
        for coords, inside, outside in self._parts(box):
            block = self.padded(coords, self.extent(coords), fill)
            block[inside] = values[outside]
            if is_fill(block, fill):
                self.blocks.pop(coords, None)
            else:
                self.blocks[coords] = block

    def padded(self, coords: Coords, extent: tuple[int, ...], fill: Any) -> np.ndarray:
        """Return a block as it is read, with the fill value for elements that were not written."""
        block = np.full(extent, fill, self.dtype)
        if (stored := self.blocks.get(coords)) is not None:
            both = tuple(slice(min(n)) for n in zip(stored.shape, extent, strict=True))
            block[both] = stored[both]
        return block

    def read(self, box: Box, fill: Any) -> np.ndarray:
        values = np.empty([b.stop - b.start for b in box], self.dtype)
        for coords, inside, outside in self._parts(box):
            values[outside] = self.padded(coords, self.chunks, fill)[inside]
        return values

    def values(self) -> np.ndarray:
        return self.read(tuple(slice(0, n) for n in self.shape), self.fill)

    def is_stored(self) -> np.ndarray:
        """Return which elements are in a block, as others are 0 in programs without fill values."""
        known = Dataset(self.shape, self.chunks, np.dtype(bool), {}, False)
        known.blocks = {c: np.ones(b.shape, bool) for c, b in self.blocks.items()}
        return known.values()

    def resize(self, shape: tuple[int, ...]) -> None:
        self.remove_outside(shape, self.shape)
        self.shape = shape

    def remove_outside(self, shape: tuple[int, ...], known: tuple[int, ...]) -> None:
        """Remove blocks outside of a shape, of those inside of the shape that an array knew."""
        kept = self.grid_at(shape)
        for coords in np.ndindex(*self.grid_at(known)):
            if any(at >= n for at, n in zip(coords, kept, strict=True)):
                self.blocks.pop(coords, None)


@dataclass
class Node:
    """A group, or an array with a dataset."""

    attributes: dict[str, Any] = field(default_factory=dict)
    dataset: Dataset | None = None


@dataclass
class Container:
    """A model of all nodes by path; ``""`` is the root."""

    nodes: dict[str, Node] = field(default_factory=dict)

    def add(self, path: str, node: Node) -> None:
        """Add a node, and the groups above it."""
        for above in parents(path):
            self.nodes.setdefault(above, Node())
        self.nodes[path] = node

    def remove(self, path: str) -> None:
        """Remove a node with all below it."""
        self.nodes = {p: node for p, node in self.nodes.items() if not is_at_or_below(p, path)}

    def is_below_array(self, path: str) -> bool:
        return any(p in self.nodes and self.nodes[p].dataset is not None for p in parents(path))


def parents(path: str) -> list[str]:
    """Return the paths of all groups above a node, the root first."""
    names = path.split("/") if path else []
    return ["/".join(names[:n]) for n in range(len(names))]


def is_at_or_below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")


def pattern(shape: tuple[int, ...], dtype: np.dtype, number: int, fill: Any) -> np.ndarray:
    """Make elements of which no two neighbours are equal; all are the fill value for 0."""
    if number == 0:
        return np.full(shape, fill, dtype)
    numbers = (np.arange(math.prod(shape)) * number + number) % 97
    return numbers.astype("i8").astype(dtype).reshape(shape)
