"""Refer to all chunks of a hierarchy, in batches, and count the bytes that are copied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.codecs.compress import passes
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.storage.requests import each_once
from n5zarr.store.missing_nodes import not_found
from n5zarr.tools.jobs.nodes import block_tasks
from n5zarr.tools.virtualize.layout import VirtualArray, read_tree
from n5zarr.tools.virtualize.references import refer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.nodes import BlockTask
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.tools.virtualize.layout import Member
    from n5zarr.tools.virtualize.references import Chunk
    from n5zarr.zarr_view.chunk_grid import ChunkGrid

__all__ = ["MAX_INLINED", "Counts", "each_chunk", "members_of"]

MAX_INLINED = 2**26
"""Bytes of chunks that are copied, at most, unless a user asks for more."""

_BATCH = 256  # blocks that one task refers to


def members_of(
    store: N5Store, path: str, *, coords: bool, chunk_grid: ChunkGrid = "regular"
) -> list[Member]:
    """Lay out the hierarchy of a node; see :func:`~n5zarr.tools.virtualize.layout.read_tree`.

    Raises
    ------
    FileNotFoundError
        No node exists at the path.
    """
    node = store.node(path)
    if node is None:
        raise not_found(store, path)
    nodes = store.container.nodes
    tree = read_tree(nodes, path, node, coords=coords, chunk_grid=chunk_grid)
    return store.ask(each_once(tree))


def each_chunk(
    store: N5Store, members: Sequence[Member], run: RunOptions
) -> Iterator[tuple[VirtualArray, list[Chunk]]]:
    """Refer to all blocks of the arrays of a hierarchy, and yield some at a time, in any order."""
    arrays = [member for member in members if isinstance(member, VirtualArray)]
    total = sum(array.n_chunks * array.view.full_n_bytes for array in arrays)
    tasks = (
        _Task(array, blocks)
        for array in arrays
        for blocks in block_tasks(store, array.source, array.view, _BATCH)
    )
    for task, chunks in run.each(partial(_refer, store), tasks, "referring", total):
        yield task.array, chunks


class _Task(NamedTuple):
    array: VirtualArray
    blocks: BlockTask

    @property
    def n_bytes(self) -> int:
        return self.blocks.n_bytes


def _refer(store: N5Store, task: _Task) -> list[Chunk]:
    """Refer to some blocks of one array."""
    path, view, positions = task.blocks
    try:
        return store.ask(refer(path, view, positions, is_local=store.storage.has_stamps))
    except N5Error as err:
        err.where = f"{store}: {err.where or path or '/'}"
        raise


@dataclass
class Counts:
    """Count chunks, and raise if too much is copied."""

    container: str
    max_inlined: int
    n_referenced: int = 0
    n_bytes_referenced: int = 0
    n_inlined: int = 0
    n_bytes_inlined: int = 0

    def add(self, array: VirtualArray, chunks: Sequence[Chunk]) -> None:
        """Count some chunks.

        Raises
        ------
        N5UnsupportedError
            More is copied than may be (``kind="option"``).
        """
        for chunk in chunks:
            if chunk.data is None:
                self.n_referenced += 1
                self.n_bytes_referenced += chunk.length
            else:
                self.n_inlined += 1
                self.n_bytes_inlined += chunk.length
        if self.n_bytes_inlined > self.max_inlined:
            raise _too_much(array, self.max_inlined).located(
                f"{self.container}: {array.source or '/'}"
            )


def _too_much(array: VirtualArray, max_inlined: int) -> N5UnsupportedError:
    """Say why chunks of an array are copied, and the ways out."""
    view = array.view
    ways = "max_inlined= (--max-inlined) allows more; n5zarr.convert (n5zarr convert) copies all"
    if view.passes_payloads and passes(view.compression):
        why = "its blocks are truncated at the end of axes"
        if view.chunk_grid == "regular":
            grid = "chunk_grid='rectilinear' (--chunk-grid)"
            ways = f"{grid} refers to them, too, in JSON and Icechunk; {ways}"
    else:
        stored = f"{view.dataset.type_name} with {view.dataset.compression.type}"
        why = f"no codec of zarr-python reads its blocks, of {stored}"
    message = (
        f"expected to copy at most {max_inlined} bytes of chunks into the references, got more: "
        f"{why}; {ways}"
    )
    return N5UnsupportedError(message, kind="option")
