"""Write kerchunk references: one JSON file, or Parquet files for very many references.

Specification: https://fsspec.github.io/kerchunk/spec.html, version 1. fsspec's reference file
system reads both. JSON is written here: VirtualiZarr writes one xarray Dataset, so no groups and no
chunks at the end of axes that are smaller. Parquet is written by fsspec, and holds Zarr v2 only.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.errors import N5MissingDependencyError
from n5zarr.format.path import join
from n5zarr.storage.choosing import store_of_url
from n5zarr.storage.url import is_url, local_path
from n5zarr.tools.virtualize.layout import VirtualCoordinate, chunk_key
from n5zarr.tools.virtualize.places import url_of_block

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.tools.virtualize.layout import Member, VirtualArray
    from n5zarr.tools.virtualize.references import Chunk
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["JsonWriter", "ParquetWriter"]

_LARGEST_RECORD = 100_000  # references in one Parquet file
_SPARSE_RECORD = 1000  # of an array most of whose chunks must be missing
_MOST_STORED = 10**8  # chunks that a container may have


class _References:
    """Turn members and chunks into references, which subclasses store."""

    def __init__(self, container: str, zarr_format: ZarrFormat) -> None:
        self._container = container
        self._zarr_format = zarr_format

    def keep(self, key: str, value: str | bytes | list[str | int]) -> None:
        """Keep a document, the bytes of a chunk, or URL, offset and length."""
        raise NotImplementedError

    def add(self, member: Member) -> None:
        """Add the documents of a member, and the chunk of a coordinate."""
        for name, document in member.documents(self._zarr_format).items():
            self.keep(join(member.path, name), json.dumps(document))
        if isinstance(member, VirtualCoordinate) and member.chunk is not None:
            self.keep(chunk_key(member.path, (0,), self._zarr_format), member.chunk)

    def refer(self, array: VirtualArray, chunks: Sequence[Chunk]) -> None:
        """Add chunks of an array that has been added."""
        for chunk in chunks:
            key = chunk_key(array.path, chunk.coords, self._zarr_format)
            url = url_of_block(self._container, chunk.key)
            self.keep(key, [url, chunk.offset, chunk.length] if chunk.data is None else chunk.data)


class JsonWriter(_References):
    """Write one JSON file, which appears when it is complete.

    Parameters
    ----------
    container : str
        URL of the container.
    zarr_format : {3, 2}
        Format of the hierarchy.
    out : str
        Path or URL of the file.
    options : mapping or None
        Options of fsspec, for a URL.
    """

    def __init__(
        self,
        container: str,
        zarr_format: ZarrFormat,
        out: str,
        options: Mapping[str, object] | None,
    ) -> None:
        super().__init__(container, zarr_format)
        self._out, self._options = out, options
        self._is_url = is_url(out)
        path = None if self._is_url else Path(local_path(out)).absolute()
        folder = None if path is None else path.parent
        if folder is not None and not folder.is_dir():
            raise FileNotFoundError(f"{folder}: expected a directory, to put {out} there")
        suffix = ".json" if path is None else f"{path.name}.partial"
        number, self._partial = tempfile.mkstemp(dir=folder, prefix=".", suffix=suffix)
        self._file = os.fdopen(number, "w", encoding="utf-8")
        self._file.write('{"version": 1, "refs": {')
        self._separator = "\n"

    @override
    def keep(self, key: str, value: str | bytes | list[str | int]) -> None:
        if isinstance(value, bytes):
            value = f"base64:{base64.b64encode(value).decode()}"
        self._file.write(f"{self._separator}{json.dumps(key)}: {json.dumps(value)}")
        self._separator = ",\n"

    def finish(self) -> None:
        """Put the file in its place."""
        self._file.write("\n}}\n")
        self._file.close()
        if not self._is_url:
            mask = os.umask(0)
            os.umask(mask)
            Path(self._partial).chmod(0o666 & ~mask)  # temporary files are private
            Path(self._partial).replace(local_path(self._out))
            return
        folder, _, name = self._out.rpartition("/")
        store = store_of_url(folder, self._options, read_only=False, backend="fsspec")
        sync(store.set(name, cpu.Buffer.from_bytes(Path(self._partial).read_bytes())))
        self.close()

    def close(self) -> None:
        """Remove incomplete files."""
        try:
            self._file.close()  # the remaining data may not fit on the disk
        finally:
            Path(self._partial).unlink(missing_ok=True)


@contextmanager
def _without_notices() -> Iterator[None]:
    """Ignore the warning of pandas about fastparquet, which fsspec uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The 'fastparquet' engine", DeprecationWarning)
        yield


class ParquetWriter(_References):
    """Write a directory of Parquet files with fsspec.

    Parameters
    ----------
    container : str
        URL of the container.
    out : str
        Path or URL of the directory; existing content is removed.
    options : mapping or None
        Options of fsspec, for a URL.
    n_chunks : int
        Number of chunks of the largest array.
    """

    def __init__(
        self, container: str, out: str, options: Mapping[str, object] | None, n_chunks: int
    ) -> None:
        super().__init__(container, 2)
        # references of a file; missing ones take space in it, too
        size = _LARGEST_RECORD if n_chunks <= _MOST_STORED else _SPARSE_RECORD
        self._mapper: Any = _mapper(
            out if is_url(out) else str(Path(local_path(out)).absolute()),
            storage_options=dict(options or {}),
            record_size=max(1, min(n_chunks, size)),
        )

    @override
    @_without_notices()
    def keep(self, key: str, value: str | bytes | list[str | int]) -> None:
        self._mapper[key] = value

    @_without_notices()
    def finish(self) -> None:
        """Write the last files, and the documents."""
        self._mapper.flush()

    def close(self) -> None:
        """Do nothing: files without documents form no arrays, and may stay."""


def _mapper(out: str, **options: object) -> object:
    purpose = "references of kerchunk in Parquet"
    try:
        import fastparquet  # noqa: F401, PLC0415 - the extra may be missing
        import kerchunk.df  # noqa: F401, PLC0415
        from fsspec.implementations.reference import LazyReferenceMapper  # noqa: PLC0415
    except ImportError as err:
        raise N5MissingDependencyError(err.name or "kerchunk", purpose, "virtual") from err
    return LazyReferenceMapper.create(out, **options)
