"""``n5zarr.virtualize``: references to the blocks of a container, for readers of plain Zarr."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from zarr.buffer import cpu

from n5zarr._zarr_private import sync
from n5zarr.container.options import check_option
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.path import local_path
from n5zarr.storage.requests import each_once
from n5zarr.storage.url import is_url, store_of_url, tolerant
from n5zarr.store.location import open_container
from n5zarr.store.looking import not_found
from n5zarr.tools.jobs.run import run_tasks
from n5zarr.tools.virtualize.layout import VirtualArray, VirtualGroup, read_tree
from n5zarr.tools.virtualize.places import url_of_container
from n5zarr.tools.virtualize.references import refer
from n5zarr.tools.virtualize.to_icechunk import IcechunkWriter
from n5zarr.tools.virtualize.to_kerchunk import JsonWriter, ParquetWriter
from n5zarr.zarr_view.chunk_grid import ChunkGrid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.format.order import N5Tuple
    from n5zarr.storage.place import Location
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.run import Progress, Scheduler
    from n5zarr.tools.virtualize.layout import Member
    from n5zarr.tools.virtualize.references import Chunk
    from n5zarr.zarr_view.dataset_view import DatasetView
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = [
    "MAX_INLINED",
    "Counts",
    "ReferenceFormat",
    "Virtualized",
    "each_chunk",
    "members_of",
    "virtualize",
]

type ReferenceFormat = Literal["json", "parquet", "icechunk"]

_SUFFIXES: Mapping[str, ReferenceFormat] = {
    ".json": "json",
    ".parq": "parquet",
    ".parquet": "parquet",
    ".icechunk": "icechunk",
}
_BATCH = 256  # blocks that one task refers to
MAX_INLINED = 2**26
"""Bytes of chunks that are copied, at most, unless a user asks for more."""


@dataclass(frozen=True)
class Virtualized:
    """What :func:`virtualize` wrote.

    Parameters
    ----------
    container : str
        URL of the container, to which the references point.
    path : str
        Path or URL of the references.
    format : {"json", "parquet", "icechunk"}
        Their format.
    n_groups, n_arrays, n_coordinates : int
        Numbers of groups, of arrays whose chunks are blocks, and of coordinates.
    n_referenced, n_bytes_referenced : int
        Chunks that are parts of blocks, and their bytes.
    n_inlined, n_bytes_inlined : int
        Chunks that are copied, because no part of the block is the chunk, and their bytes.
    n_missing : int
        Chunks without block, which read as the fill value.
    """

    container: str
    path: str
    format: ReferenceFormat
    n_groups: int
    n_arrays: int
    n_coordinates: int
    n_referenced: int
    n_bytes_referenced: int
    n_inlined: int
    n_bytes_inlined: int
    n_missing: int


class _Writer(Protocol):
    def add(self, member: Member) -> None: ...

    def refer(self, array: VirtualArray, chunks: Sequence[Chunk]) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None: ...


def virtualize(  # noqa: PLR0913 - two places with their options, and what is written
    store: Location,
    out: str | Path,
    path: str = "",
    *,
    format: ReferenceFormat | None = None,  # noqa: A002 - as of other functions that write
    url: str | None = None,
    coords: bool = True,
    zarr_format: ZarrFormat | None = None,
    chunk_grid: ChunkGrid = "regular",
    max_inlined: int = MAX_INLINED,
    message: str | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
    out_options: Mapping[str, object] | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Virtualized:
    """Write references to the blocks of a container, which readers of plain Zarr open.

    N5 spec, "File-system specification", items 8 and 9: a block is a header, and a payload that is
    the chunk of a Zarr array with the codec of the same compression. So a chunk is a part of a
    block, which is found by reading the headers. Blocks that are truncated, and payloads that no
    codec of zarr-python reads (lz4, jpeg, labels, text), are copied into the references.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or a location in one.
    out : path or URL
        What to write: ``*.json`` or ``*.parq`` for kerchunk, ``*.icechunk`` for Icechunk.
    path : str, optional
        Node below ``store``, which becomes the root.
    format : {"json", "parquet", "icechunk"}, optional
        By default, chosen by the suffix of ``out``.
    url : str, optional
        URL under which readers find the container, if it is not that of ``store``.
    coords : bool, optional
        Whether axes become coordinates, and datasets with the same axes are arrays of one group, as
        xarray's engine ``"n5"`` shows them. Otherwise each dataset is an array at its own path.
    zarr_format : {3, 2}, optional
        Format of the hierarchy: 3 by default; Parquet is 2, Icechunk 3.
    chunk_grid : {"regular", "rectilinear"}, optional
        ``"rectilinear"``: truncated blocks at the end of an axis are referred to as well, for
        readers that know this extension of Zarr v3. Not with Parquet.
    max_inlined : int, optional
        Bytes of chunks that may be copied.
    message : str, optional
        Of the commit, with Icechunk.
    overwrite : bool, optional
        Whether to replace what is at ``out``; with Icechunk, by another commit.
    storage_options : dict, optional
        For fsspec, with a URL of a container.
    out_options : dict, optional
        For the URL of ``out``: of fsspec, or of Icechunk's storage.
    scheduler : optional
        What runs the tasks, see :func:`~n5zarr.tools.jobs.run.run_tasks`.
    n_workers : int, optional
        How many threads or processes.
    progress : callable, optional
        Called with the name of a stage, and bytes of chunks done and to do, before compression.

    Returns
    -------
    Virtualized
        What was written.

    Raises
    ------
    FileNotFoundError
        No node is at the path.
    FileExistsError
        There is something at ``out``.
    N5UnrepresentableError
        An option has none of its valid values (``kind="option"``).
    N5UnsupportedError
        More would be copied than ``max_inlined``, or other programs cannot read the container
        (``kind="option"``).
    N5Error
        A block is damaged.
    N5MissingDependencyError
        A package of the extra ``virtual`` is not installed.

    Examples
    --------
    >>> import json, pathlib, tempfile, n5zarr
    >>> out = pathlib.Path(tempfile.mkdtemp(), "sample.json")
    >>> written = n5zarr.virtualize(n5zarr.sample_path(), out)
    >>> written.n_arrays, written.n_referenced, written.n_inlined
    (4, 17, 48)
    """
    target = _Target(str(out), _format(str(out), format), out_options, message, overwrite)
    _check_options(target, zarr_format, chunk_grid)
    version: ZarrFormat = zarr_format or (2 if target.format == "parquet" else 3)
    opened, node_path = open_container(store, path, storage_options=storage_options, read_only=True)
    opened = opened.showing(version)
    container = url.rstrip("/") if url else url_of_container(opened)
    members = members_of(opened, node_path, coords=coords, chunk_grid=chunk_grid)
    writer = target.open(container, version, members, storage_options)
    counts = Counts(str(opened), max_inlined)
    try:
        for member in members:
            writer.add(member)
        steps = each_chunk(
            opened, members, scheduler=scheduler, n_workers=n_workers, progress=progress
        )
        for array, chunks in steps:
            counts.add(array, chunks)
            writer.refer(array, chunks)
        writer.finish()
    finally:
        writer.close()
    return counts.result(container, target, members)


def members_of(
    store: N5Store, path: str, *, coords: bool, chunk_grid: ChunkGrid = "regular"
) -> list[Member]:
    """Lay out the hierarchy of a node; see :func:`~n5zarr.tools.virtualize.layout.read_tree`.

    Raises
    ------
    FileNotFoundError
        No node is at the path.
    """
    node = store.node(path)
    if node is None:
        raise not_found(store, path)
    nodes = store.container.nodes
    tree = read_tree(nodes, path, node, coords=coords, chunk_grid=chunk_grid)
    return store.ask(each_once(tree))


def each_chunk(
    store: N5Store,
    members: Sequence[Member],
    *,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[VirtualArray, list[Chunk]]]:
    """Refer to all blocks of the arrays of a hierarchy, and yield some at a time, in any order.

    Parameters
    ----------
    store : N5Store
        The container.
    members : sequence of Member
        The hierarchy.
    scheduler, n_workers, progress : optional
        As of :func:`virtualize`.
    """
    arrays = [member for member in members if isinstance(member, VirtualArray)]
    n_total = sum(array.n_chunks * array.view.full_n_bytes for array in arrays)
    n_done = 0

    def tasks() -> Iterator[_Task]:
        nonlocal n_done
        for number, array in enumerate(arrays):
            listing = store.container.nodes.grid_positions(array.source, array.view)
            positions = iter(store.ask(listing))
            n_blocks = 0
            while batch := list(islice(positions, _BATCH)):
                n_blocks += len(batch)
                yield number, array.source, array.view, batch
            n_done += (array.n_chunks - n_blocks) * array.view.full_n_bytes

    work = partial(_refer, store)
    for number, n_blocks, chunks in run_tasks(
        work, tasks(), scheduler=scheduler, n_workers=n_workers
    ):
        n_done += n_blocks * arrays[number].view.full_n_bytes
        if progress is not None:
            progress("referring", n_done, n_total)
        yield arrays[number], chunks


type _Task = tuple[int, str, DatasetView, list[N5Tuple]]


def _refer(store: N5Store, task: _Task) -> tuple[int, int, list[Chunk]]:
    """Refer to some blocks of one array; return its number, their number, and the chunks."""
    number, source, view, positions = task
    try:
        return number, len(positions), store.ask(refer(source, view, positions))
    except N5Error as err:
        err.where = f"{store}: {err.where or source or '/'}"
        raise


@dataclass(frozen=True)
class _Target:
    """What is written, and where."""

    out: str
    format: ReferenceFormat
    options: Mapping[str, object] | None
    message: str | None
    overwrite: bool

    def open(
        self,
        container: str,
        zarr_format: ZarrFormat,
        members: Sequence[Member],
        source_options: Mapping[str, object] | None,
    ) -> _Writer:
        """Make the writer."""
        if self.format != "icechunk" and not self.overwrite:
            self._check_free()
        match self.format:
            case "json":
                return JsonWriter(container, zarr_format, self.out, self.options)
            case "parquet":
                arrays = (member for member in members if isinstance(member, VirtualArray))
                largest = max((array.n_chunks for array in arrays), default=1)
                return ParquetWriter(container, self.out, self.options, largest)
            case "icechunk":
                return IcechunkWriter(
                    container,
                    source_options,
                    self.out,
                    self.options,
                    message=self.message or f"References to {container}",
                    overwrite=self.overwrite,
                )

    def _check_free(self) -> None:
        if is_url(self.out):
            folder, _, name = self.out.rpartition("/")
            store = store_of_url(folder, self.options, read_only=True, backend="fsspec")
            key = name if self.format == "json" else f"{name}/.zmetadata"
            is_there = sync(tolerant(store).get(key, cpu.buffer_prototype)) is not None
        else:
            is_there = Path(local_path(self.out)).exists()
        if is_there:
            message = f"{self.out}: exists; overwrite=True (--overwrite) replaces it"
            raise FileExistsError(message)


def _format(out: str, given: ReferenceFormat | None) -> ReferenceFormat:
    """Choose the format by the suffix, unless it is given."""
    if given is not None:
        check_option("format", given, get_args(ReferenceFormat.__value__))
        return given
    suffix = PurePosixPath(out.rstrip("/")).suffix.lower()
    if suffix not in _SUFFIXES:
        message = (
            f"{out}: expected a name that ends in {', '.join(_SUFFIXES)}, got {suffix!r}; "
            "format= (--format) says what to write"
        )
        raise N5UnrepresentableError(message, kind="option")
    return _SUFFIXES[suffix]


def _check_options(target: _Target, zarr_format: ZarrFormat | None, chunk_grid: ChunkGrid) -> None:
    check_option("zarr_format", zarr_format, (None, 2, 3))
    check_option("chunk_grid", chunk_grid, get_args(ChunkGrid.__value__))
    only = {"parquet": 2, "icechunk": 3}.get(target.format, zarr_format)
    if zarr_format not in (None, only):
        message = f"zarr_format: expected {only} with {target.format}, got {zarr_format}"
        raise N5UnrepresentableError(message, kind="option")
    if chunk_grid == "rectilinear" and only == 2:
        message = "chunk_grid='rectilinear': expected Zarr v3, got 2, which has no such grid"
        raise N5UnrepresentableError(message, kind="option")


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

    def result(self, container: str, target: _Target, members: Sequence[Member]) -> Virtualized:
        """Sum up what was written."""
        arrays = [member for member in members if isinstance(member, VirtualArray)]
        n_groups = sum(isinstance(member, VirtualGroup) for member in members)
        n_chunks = sum(array.n_chunks for array in arrays)
        return Virtualized(
            container=container,
            path=target.out,
            format=target.format,
            n_groups=n_groups,
            n_arrays=len(arrays),
            n_coordinates=len(members) - n_groups - len(arrays),
            n_referenced=self.n_referenced,
            n_bytes_referenced=self.n_bytes_referenced,
            n_inlined=self.n_inlined,
            n_bytes_inlined=self.n_bytes_inlined,
            n_missing=n_chunks - self.n_referenced - self.n_inlined,
        )


def _too_much(array: VirtualArray, max_inlined: int) -> N5UnsupportedError:
    """Say why chunks of an array are copied, and the ways out."""
    view = array.view
    ways = "max_inlined= (--max-inlined) allows more; n5zarr.convert (n5zarr convert) copies all"
    if view.passes_payloads:
        why = "its blocks are truncated at the end of axes"
        if view.chunk_grid == "regular" and view.zarr_format != 2:
            ways = f"chunk_grid='rectilinear' (--chunk-grid) refers to them, too; {ways}"
    else:
        stored = f"{view.dataset.type_name} with {view.dataset.compression.type}"
        why = f"no codec of zarr-python reads its blocks, of {stored}"
    message = (
        f"expected to copy at most {max_inlined} bytes of chunks into the references, got more: "
        f"{why}; {ways}"
    )
    return N5UnsupportedError(message, kind="option")
