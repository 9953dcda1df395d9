"""``n5zarr.virtualize``: write references to the blocks of a container, for readers of Zarr."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.container.options import check_option, require
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.opening import OPEN_URL
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.storage.secrets import named
from n5zarr.storage.url import is_url, local_path, split_query
from n5zarr.store.locating import open_container
from n5zarr.store.shown_store import check_stored
from n5zarr.tools.jobs.run import Progress, RunOptions, Scheduler
from n5zarr.tools.virtualize.layout import VirtualArray, VirtualGroup, VirtualMember, members_of
from n5zarr.tools.virtualize.parquet import DOCUMENT, ParquetWriter
from n5zarr.tools.virtualize.references import (
    MAX_INLINED,
    each_chunk,
    plain_prefix,
    url_of_container,
)
from n5zarr.tools.virtualize.writers import IcechunkWriter, JsonWriter, Writer
from n5zarr.zarr_view.chunk_grid import ChunkGrid
from n5zarr.zarr_view.keys import ZarrFormat

type ReferenceFormat = Literal["json", "parquet", "icechunk"]

_SUFFIXES: Mapping[str, ReferenceFormat] = {
    ".json": "json",
    ".parq": "parquet",
    ".parquet": "parquet",
    ".icechunk": "icechunk",
}

_DOCUMENTS = ("attributes.json", "zarr.json")  # of containers, which are never references


@dataclass(frozen=True)
class Virtualization:
    """The result of :func:`virtualize`.

    Parameters
    ----------
    container : str
        URL of the container, to which the references point.
    prefix : str
        Beginning of the URLs of all blocks. With Icechunk, a reader must allow it in
        ``authorize_virtual_chunk_access``.
    path : str
        Path or URL of the references.
    format : {"json", "parquet", "icechunk"}
        Their format.
    n_groups, n_arrays, n_coordinates : int
        Numbers of groups, of arrays whose chunks are blocks, and of coordinates.
    n_referenced, n_bytes_referenced : int
        Number and size of chunks that are parts of blocks.
    n_inlined, n_bytes_inlined : int
        Number and size of chunks that are copied, because they are not parts of blocks.
    n_missing : int
        Number of chunks without block, which read as the fill value.
    """

    container: str
    prefix: str
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


def virtualize(  # noqa: PLR0913 - two places with their options, and what is written
    location: Location,
    destination: str | Path,
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
    backend: Backend | None = None,
    destination_options: Mapping[str, object] | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Virtualization:
    """Write references to the blocks of a container, for readers of plain Zarr.

    N5 spec, "File-system specification", items 8 and 9: a block has a header and a payload, and the
    payload equals the chunk of a Zarr array with the codec of the same compression. So a chunk is a
    part of a block, whose header gives its position. Truncated blocks, and payloads that no codec
    of zarr-python reads (lz4, jpeg, label multisets, text), are copied into the references.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    destination : path or URL
        Where to write: ``*.json`` or ``*.parq`` for kerchunk, ``*.icechunk`` for Icechunk.
    path : str, optional
        Node below ``location``, which becomes the root.
    format : {"json", "parquet", "icechunk"}, optional
        ``"json"``, ``"parquet"`` or ``"icechunk"``; by default by the suffix of ``destination``.
    url : str, optional
        URL under which readers find the container, if it differs from that of ``location``.
    coords : bool, optional
        Whether to write axes as coordinates, with datasets of the same axes in one group, as with
        xarray's engine ``"n5"``; else each dataset keeps its path.
    zarr_format : {3, 2}, optional
        Format of the hierarchy in JSON: by default 2, as kerchunk's tools expect, unless chunks
        are truncated.
    chunk_grid : {"regular", "rectilinear"}, optional
        ``"rectilinear"``: also refer to truncated blocks, by an extension of Zarr v3 that readers
        must support. Not with Parquet.
    max_inlined : int, optional
        Maximum number of bytes of copied chunks.
    message : str, optional
        Message of the commit, with Icechunk.
    overwrite : bool, optional
        Whether to replace references at ``destination``; with Icechunk, in a new commit.
    storage_options, backend : optional
        Options for the URL of a container, and the library that reads it: as for
        :class:`~n5zarr.N5Store`.
    destination_options : dict, optional
        For the URL of ``destination``: options of fsspec, or of Icechunk's storage.
    scheduler, n_workers, progress : optional
        ``"threads"``, ``"processes"``, or dask's address or client; number of workers; a callable
        that takes the name of a stage, the bytes done and the bytes to do.

    Returns
    -------
    Virtualization
        Numbers of arrays and chunks, and where they were written.

    Raises
    ------
    FileNotFoundError
        No node exists at the path.
    FileExistsError
        ``destination`` exists; n5zarr replaces only references, and only with ``overwrite``.
    N5UnrepresentableError
        An option has an invalid value (``kind="option"``).
    N5UnsupportedError
        Copied chunks would exceed ``max_inlined``, or other programs cannot read the container
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
    (4, 18, 45)
    """
    place, out = place_of(location, storage_options, backend), str(destination)
    written = out if is_url(out) else str(Path(local_path(out)).expanduser())
    target = _Target(written, _format(out, format), destination_options, message, overwrite)
    version = _zarr_format(target.format, zarr_format, chunk_grid)
    store, node_path = open_container(place, path, writes=False)
    check_stored(store.storage.store, str(store), "Zarr needs no references: zarr.open reads it")
    store = store.showing(version)
    container = url.rstrip("/") if url else url_of_container(store)
    with asking_once():
        members = members_of(store, node_path, coords=coords, chunk_grid=chunk_grid)
    writer = target.open(container, version, members, storage_options)
    counts = Counter(n_referenced=0, n_bytes_referenced=0, n_inlined=0, n_bytes_inlined=0)
    try:
        for member in members:
            writer.add(member)
        run = RunOptions(scheduler, n_workers, progress)
        for array, chunks in each_chunk(store, members, run, max_inlined, counts):
            writer.refer(array, chunks)
        writer.finish()
    finally:
        writer.close()
    return _result(counts, container, target, members)


@dataclass(frozen=True)
class _Target:
    """The destination of the references, and how to write them."""

    out: str
    format: ReferenceFormat
    options: Mapping[str, object] | None
    message: str | None
    overwrite: bool

    def open(
        self,
        container: str,
        zarr_format: ZarrFormat,
        members: Sequence[VirtualMember],
        source_options: Mapping[str, object] | None,
    ) -> Writer:
        """Make the writer."""
        if self.format != "icechunk":
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
        """Raise if the destination exists, unless it holds references that may be replaced."""
        is_json = self.format == "json"
        document: bytes | None = None
        if is_url(self.out):
            address, query = split_query(self.out)
            folder, _, name = address.rstrip("/").rpartition("/")
            there = Place(folder + query, "", self.options, "fsspec")
            store, _ = OPEN_URL.needed()(there, read_only=True, forbidden_is_missing=True)
            key = name if is_json else f"{name}/{DOCUMENT}"
            value = sync(store.get(key, cpu.buffer_prototype))
            document = None if value is None else value.to_bytes()
            is_file = value is not None
            is_there = is_file or not (is_json or sync(store.is_empty(name)))
        else:
            path = Path(self.out).resolve()
            name, is_file = path.name, path.is_file()
            is_there = path.exists() if is_json or is_file else any(path.glob("*"))
            if not is_json and (path / DOCUMENT).is_file():
                document = (path / DOCUMENT).read_bytes()
        if is_json:
            may_be_ours = is_file and name not in _DOCUMENTS
        else:
            may_be_ours = document is not None and b'"record_size"' in document
        if is_there and not may_be_ours:
            kind = "a file" if is_json else "a directory"
            raise FileExistsError(
                f"{named(self.out)}: expected nothing or {kind} of references, got something else"
            )
        if is_there and not self.overwrite:
            raise FileExistsError(
                f"{named(self.out)}: exists; overwrite=True (--overwrite) replaces it"
            )


def _format(out: str, given: ReferenceFormat | None) -> ReferenceFormat:
    """Choose the format by the suffix, unless it is given."""
    if given is not None:
        check_option("format", given, get_args(ReferenceFormat.__value__))
        return given
    suffix = PurePosixPath(split_query(out)[0].rstrip("/")).suffix.lower()
    require(
        suffix in _SUFFIXES,
        f"{named(out)}: expected a name that ends in {', '.join(_SUFFIXES)}, got {suffix!r}; "
        "format= (--format) chooses the format",
    )
    return _SUFFIXES[suffix]


def _zarr_format(
    kind: ReferenceFormat, given: ZarrFormat | None, chunk_grid: ChunkGrid
) -> ZarrFormat:
    """Choose the Zarr format: kerchunk's own readers want 2, and truncated chunks need 3."""
    check_option("zarr_format", given, (None, 2, 3))
    check_option("chunk_grid", chunk_grid, get_args(ChunkGrid.__value__))
    truncated = chunk_grid == "rectilinear"
    require(
        not truncated or 2 not in (given, 2 if kind == "parquet" else None),
        "chunk_grid='rectilinear': expected Zarr v3, got 2, which has no such grid",
    )
    chosen: ZarrFormat = 3 if truncated or kind == "icechunk" else 2
    require(
        kind == "json" or given in (None, chosen),
        f"zarr_format: expected {chosen} with {kind}, got {given}",
    )
    return given or chosen


def _result(
    counts: Counter[str], container: str, target: _Target, members: Sequence[VirtualMember]
) -> Virtualization:
    """Return a summary of the written references."""
    arrays = [member for member in members if isinstance(member, VirtualArray)]
    n_groups = sum(isinstance(member, VirtualGroup) for member in members)
    n_chunks = sum(array.n_chunks for array in arrays)
    return Virtualization(
        container=container,
        prefix=plain_prefix(container),
        path=target.out,
        format=target.format,
        n_groups=n_groups,
        n_arrays=len(arrays),
        n_coordinates=len(members) - n_groups - len(arrays),
        n_missing=n_chunks - counts["n_referenced"] - counts["n_inlined"],
        **counts,
    )
