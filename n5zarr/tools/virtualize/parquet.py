"""Write kerchunk's references in a directory of Parquet files, for Zarr v2.

Kerchunk's specification: https://fsspec.github.io/kerchunk/spec.html, "Parquet references". Each
file is a record: it holds the references of a number of chunks that are neighbours in C order. The
blocks come in the order of N5's directories instead, so that most records grow up to the end. So
references wait in temporary files, one for each record, 24 bytes each; memory does not depend on
their number.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, override

import numpy as np

from n5zarr.container.options import require
from n5zarr.errors import import_optional
from n5zarr.format.grid import block_path
from n5zarr.format.order import present
from n5zarr.storage.url import is_url, local_path
from n5zarr.tools.virtualize.layout import VirtualArray
from n5zarr.tools.virtualize.references import Chunk, url_of_block
from n5zarr.tools.virtualize.writers import Writer

_RECORD = 10_000  # references in one file, as kerchunk's default
_SPARSE_RECORD = 1000  # of an array most of whose chunks must be missing
_MOST_STORED = 10**8  # chunks that a container may have
_TOO_MANY = 2**63  # chunks, whose numbers are int64
_TOGETHER = 2**16  # references that wait in memory
DOCUMENT = ".zmetadata"
"""Name of the documents in the directory."""


class _Array(NamedTuple):
    """What the URLs of the chunks of an array depend on; nothing for a coordinate."""

    path: str
    array: VirtualArray | None = None

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of chunks along each axis; one chunk for a scalar."""
        if self.array is None or not self.array.view.ndim:
            return (1,)
        return tuple(present(self.array.view.grid, self.array.view.axis_order))

    @property
    def strides(self) -> np.ndarray:
        """Distance of neighbours along each axis in the numbers of chunks; any number of axes."""
        return np.cumprod([1, *self.grid[:0:-1]], dtype=np.int64)[::-1]

    def urls(self, container: str, numbers: np.ndarray) -> list[str]:
        """Return the URLs of the blocks of chunks, from their numbers in C order."""
        if self.array is None:
            return []
        view, source = self.array.view, self.array.source
        rows = (numbers[:, None] // self.strides % self.grid).tolist()
        each = (block_path(view.grid_position(tuple(row[: view.ndim]))) for row in rows)
        folder = url_of_block(container, source).rstrip("/")  # numbers need no quotes
        return [f"{folder}/{path}" for path in each]


class ParquetWriter(Writer):
    """Write a directory of Parquet files.

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
        purpose = "references of kerchunk in Parquet"
        self._fastparquet = import_optional("fastparquet", purpose, "virtual")
        self._pandas = import_optional("pandas", purpose, "virtual")
        fsspec = import_optional("fsspec.core", purpose, "virtual")
        require(
            n_chunks < _TOO_MANY,
            f"{out}: expected less than 2**63 chunks of an array in Parquet, got {n_chunks}; JSON "
            "holds them",
        )
        # references of a file; missing ones take space in it, too
        self._size = max(1, min(n_chunks, _RECORD if n_chunks <= _MOST_STORED else _SPARSE_RECORD))
        place = out if is_url(out) else str(Path(local_path(out)).absolute())
        self._fs, self._root = fsspec.url_to_fs(place, **(options or {}))
        if self._fs.exists(self._root):
            self._fs.rm(self._root, recursive=True)
        self._fs.makedirs(self._root, exist_ok=True)
        self._documents: dict[str, Any] = {}
        self._write_documents({})
        self._folder = tempfile.TemporaryDirectory(prefix="n5zarr-")
        self._data = Path(self._folder.name, "data").open("w+b")  # noqa: SIM115 - of copied chunks
        self._arrays: dict[str, _Array] = {}
        self._waiting: dict[str, list[np.ndarray]] = {}
        self._n_waiting = 0

    @override
    def keep(self, key: str, value: str | bytes | list[str | int]) -> None:
        if isinstance(value, str):
            self._documents[key] = json.loads(value)
        elif isinstance(value, bytes):  # the only chunk of a coordinate
            self._wait(_Array(key.rpartition("/")[0]), np.array([self._row(0, value)]))

    @override
    def refer(self, array: VirtualArray, chunks: Sequence[Chunk]) -> None:
        if not chunks:
            return
        each = _Array(array.path, array)
        coords = np.array([chunk.coords or (0,) for chunk in chunks], np.int64)
        numbers = (coords @ each.strides).tolist()
        rows = [
            (number, chunk.offset, chunk.length)
            if chunk.data is None
            else self._row(number, chunk.data)
            for number, chunk in zip(numbers, chunks, strict=True)
        ]
        self._wait(each, np.array(rows, np.int64))

    def _row(self, number: int, data: bytes) -> tuple[int, int, int]:
        """Put a copied chunk into the temporary file; return its number, ~offset and length."""
        offset = self._data.tell()
        self._data.write(data)
        return number, ~offset, len(data)

    def _wait(self, array: _Array, rows: np.ndarray) -> None:
        """Keep references of an array until :meth:`finish`: number, offset and length of each."""
        self._arrays.setdefault(array.path, array)
        self._waiting.setdefault(array.path, []).append(rows)
        self._n_waiting += len(rows)
        if self._n_waiting >= _TOGETHER:
            self._put_aside()

    def _put_aside(self) -> None:
        """Append the references in memory to the temporary files of their records."""
        numbers = {path: number for number, path in enumerate(self._arrays)}
        for path, parts in self._waiting.items():
            rows = np.concatenate(parts)
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            records = rows[:, 0] // self._size
            starts = np.flatnonzero(np.diff(records, prepend=-1))
            for record, own in zip(records[starts], np.split(rows, starts[1:]), strict=True):
                with Path(self._folder.name, f"{numbers[path]}-{record}").open("ab") as file:
                    file.write(own.tobytes())
        self._waiting, self._n_waiting = {}, 0

    @override
    def finish(self) -> None:
        self._put_aside()
        each = list(self._arrays.values())
        for file in Path(self._folder.name).glob("*-*"):
            number, record = map(int, file.name.split("-"))
            rows = np.frombuffer(file.read_bytes(), np.int64).reshape(-1, 3)
            self._write(each[number], record, rows)
        self._write_documents(self._documents)

    def _write(self, array: _Array, record: int, rows: np.ndarray) -> None:
        """Write a record; ``rows`` are number, offset and length of each reference."""
        numbers, offsets, lengths = rows.T
        at, is_copied = numbers % self._size, offsets < 0
        columns: dict[str, np.ndarray] = {
            "path": np.full(self._size, np.nan, object),
            "offset": np.zeros(self._size, np.int64),
            "size": np.zeros(self._size, np.int64),
            "raw": np.full(self._size, np.nan, object),
        }
        there = at[~is_copied]
        columns["path"][there] = array.urls(self._container, numbers[~is_copied])
        columns["offset"][there] = offsets[~is_copied]
        columns["size"][there] = lengths[~is_copied]
        for place, offset, length in rows[is_copied].tolist():
            self._data.seek(~offset)
            columns["raw"][place % self._size] = self._data.read(length)
        folder = f"{self._root}/{array.path}"
        self._fs.makedirs(folder, exist_ok=True)
        self._fastparquet.write(
            f"{folder}/refs.{record}.parq",
            self._pandas.DataFrame(columns, copy=False),
            compression="zstd",
            open_with=lambda path, _: self._fs.open(path, "wb"),
            write_index=False,
            object_encoding={"path": "utf8", "raw": "bytes"},
            has_nulls=["path", "raw"],
            stats=False,
        )

    def _write_documents(self, documents: Mapping[str, Any]) -> None:
        text = json.dumps({"metadata": documents, "record_size": self._size})
        self._fs.pipe(f"{self._root}/{DOCUMENT}", text.encode())

    @override
    def close(self) -> None:
        try:
            self._data.close()  # writes what is left, for which there may be no room
        finally:
            self._folder.cleanup()
