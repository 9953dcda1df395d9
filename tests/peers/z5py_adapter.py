"""Offer z5py's calls over n5zarr, as far as z5py's own tests of N5 need."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import zarr

import n5zarr
from n5zarr import N5Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__version__ = "3.0.2"
RESERVED = ("dimensions", "blockSize", "dataType", "compression", "compressionType")
DEFAULTS: dict[str, dict[str, Any]] = {
    "raw": {},
    "gzip": {"level": 5},
    "bzip2": {"blockSize": 5},
    "xz": {"preset": 6},
    "zstd": {"level": 3},
    "lz4": {"blockSize": 6},
    "blosc": {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
}
NAMES = {"bzip2": {"level": "blockSize"}, "xz": {"level": "preset"}, "lz4": {"level": "blockSize"}}

_coders: dict[str, Any] = {"encoder": None, "decoder": None}


def set_json_encoder(encoder: Any) -> None:
    _set_coder("encoder", encoder, json.JSONEncoder)


def set_json_decoder(decoder: Any) -> None:
    _set_coder("decoder", decoder, json.JSONDecoder)


def _set_coder(name: str, coder: Any, base: type) -> None:
    if coder is not None and not (isinstance(coder, type) and issubclass(coder, base)):
        raise RuntimeError(f"expected a {base.__name__}")
    _coders[name] = coder


class Attributes:
    def __init__(self, node: Any) -> None:
        self._node = node

    def _check(self, key: str) -> None:
        if key in RESERVED and isinstance(self._node, zarr.Array):
            raise RuntimeError(f"{key} is reserved")

    def __getitem__(self, key: str) -> Any:
        document = json.dumps(dict(self._node.attrs))
        return json.loads(document, cls=_coders["decoder"])[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._check(key)
        self._node.attrs[key] = json.loads(json.dumps(value, cls=_coders["encoder"]))

    def __delitem__(self, key: str) -> None:
        self._check(key)
        del self._node.attrs[key]

    def __contains__(self, key: str) -> bool:
        return key in self._node.attrs

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


class Node:
    """The common part of files, groups and datasets."""

    def __init__(self, parent: Group | None, name: str, node: Any) -> None:
        self.parent: Group = cast("Group", self) if parent is None else parent
        self.name = name
        self._node = node

    @property
    def file(self) -> File:
        return self.parent.file

    @property
    def attrs(self) -> Attributes:
        return Attributes(self._node)

    def __reduce__(self) -> Any:
        return _again, (self.file.filename, self.file.mode, self.name)


def _again(filename: str, mode: str, name: str) -> Any:
    return File(filename, mode)[name]


class Group(Node):
    is_zarr = False

    def _full(self, name: str) -> str:
        return f"{self.name}/{name}".strip("/").replace("//", "/")

    def _path(self, name: str) -> Path:
        return Path(self.file.filename, self._full(name))

    def _child(self, name: str) -> Any:
        *parents, last = name.strip("/").split("/")
        parent: Any = self
        for part in parents:
            parent = parent[part]
        return parent if not last else parent._open(last)

    def _open(self, name: str) -> Any:
        try:
            node = zarr.open(self.file.store, path=self._full(name), mode=self.file.node_mode)
        except FileNotFoundError as err:
            raise KeyError(name) from err
        kind = Dataset if isinstance(node, zarr.Array) else Group
        return kind(self, f"/{self._full(name)}", node)

    def __getitem__(self, name: str) -> Any:
        return self._child(name)

    def __contains__(self, name: str) -> bool:
        try:
            self._child(name)
        except KeyError:
            return False
        return True

    def __delitem__(self, name: str) -> None:
        del self._node[name.strip("/")]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._node))

    def keys(self) -> list[str]:
        return list(self)

    def visititems(self, visit: Callable[[str, Any], Any]) -> Any:
        for name in self:
            child = self[name]
            found = visit(name, child)
            if found is None and isinstance(child, Group):
                found = child.visititems(_below(name, visit))
            if found is not None:
                return found
        return None

    def _check_mode(self) -> None:
        if self.file.mode == "r":
            raise ValueError("the file is read-only")

    def create_group(self, name: str) -> Any:
        self._check_mode()
        self._node.create_group(name)
        return self[name]

    def require_group(self, name: str) -> Any:
        return self[name] if name in self else self.create_group(name)

    def create_dataset(  # noqa: PLR0917 - as z5py's
        self,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        data: Any = None,
        chunks: Any = None,
        compression: str = "gzip",
        fillvalue: Any = 0,
        n_threads: int = 1,
        **options: Any,
    ) -> Any:
        self._check_mode()
        shape = data.shape if shape is None else shape
        dtype = np.dtype(data.dtype if dtype is None else dtype)
        n5zarr.create_array(
            self._path(name),
            shape=shape,
            dtype=dtype.newbyteorder("="),
            chunks=chunks or tuple(min(n, 64) for n in shape),
            compression=_compression(compression, options),
            fill_value=fillvalue or None,
        )
        if data is not None:
            self[name][...] = data
        return self[name]

    def require_dataset(
        self, name: str, shape: Any, dtype: Any = None, chunks: Any = None, **options: Any
    ) -> Any:
        if name not in self:
            return self.create_dataset(name, shape=shape, dtype=dtype, chunks=chunks, **options)
        found = self[name]
        same = found.shape == tuple(shape) and found.dtype == np.dtype(dtype)
        if not same or (chunks is not None and found.chunks != tuple(chunks)):
            raise TypeError("another dataset exists")
        return found


def _below(name: str, visit: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda child, node: visit(f"{name}/{child}", node)


def _compression(name: str, options: dict[str, Any]) -> dict[str, Any]:
    names = NAMES.get(name, {})
    given = {names.get(key, key): value for key, value in options.items()}
    if not given.keys() <= DEFAULTS[name].keys():
        raise RuntimeError(f"{name}: unknown options {sorted(given)}")
    return {"type": name} | DEFAULTS[name] | given


class File(Group):
    def __init__(
        self, path: Any, mode: str = "a", use_zarr_format: bool | None = None, **_: Any
    ) -> None:
        self.filename = os.fspath(path)
        if use_zarr_format:
            raise RuntimeError("not of N5")
        is_there = Path(self.filename).exists()
        if (mode in ("r", "r+") and not is_there) or (mode in ("w-", "x") and is_there):
            raise OSError(f"{self.filename}: exists, or does not, as mode {mode} wants")
        if mode == "w" and is_there:
            shutil.rmtree(self.filename)
        self.mode = mode
        self.node_mode: Any = "r" if mode == "r" else "r+"
        self.store = N5Store(self.filename, read_only=mode == "r")
        super().__init__(None, "/", zarr.open_group(self.store, mode="r" if mode == "r" else "a"))

    def __reduce__(self) -> Any:
        return File, (self.filename, "r" if self.mode == "r" else "a")

    @property
    def file(self) -> File:
        return self

    def __getitem__(self, name: str) -> Any:
        return self if name == "/" else super().__getitem__(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class N5File(File):
    pass


class ZarrFile(File):
    """A placeholder for Zarr files, which no test of N5 opens."""


class Dataset(Node):
    compressors_n5: ClassVar = list(DEFAULTS)
    is_zarr = False

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim", "size", "chunks", "dtype"):
            return getattr(self._node, name)
        raise AttributeError(name)

    @property
    def chunks_per_dimension(self) -> tuple[int, ...]:
        return tuple(math.ceil(n / c) for n, c in zip(self.shape, self.chunks, strict=True))

    @property
    def compression_opts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._folder / "attributes.json").read_text())
        return cast("dict[str, Any]", found["compression"])

    @property
    def _folder(self) -> Path:
        return Path(self.file.filename, self.name.strip("/"))

    def __len__(self) -> int:
        return cast("int", self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._node[...], dtype)

    def _selection(self, index: Any) -> tuple[Any, ...]:
        """Check a selection for what z5py refuses: lists, steps, and numbers outside."""
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if not isinstance(part, int | np.integer | slice | type(...)):
                raise TypeError(f"selection: got {part!r}")
            if isinstance(part, slice) and part.step not in (None, 1):
                raise ValueError("selection: got a step")
        return parts

    def __getitem__(self, index: Any) -> Any:
        try:
            found = self._node[self._selection(index)]
        except IndexError as err:
            raise ValueError(str(err)) from err
        return found if np.ndim(found) else found[()]  # zarr's has no dimensions

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim and value.shape != self[index].shape:
            raise ValueError("the shapes differ")
        given = np.asarray(value)
        if given.dtype == object:
            raise OSError("no conversion")
        if given.dtype.kind not in "biuf":
            raise TypeError("no conversion")
        self._node[self._selection(index)] = given.astype(self.dtype)

    def read_direct(self, dest: Any, source_sel: Any = ..., dest_sel: Any = ...) -> None:
        dest[dest_sel] = self[source_sel]

    def write_direct(self, source: Any, source_sel: Any = ..., dest_sel: Any = ...) -> None:
        self[dest_sel] = source[source_sel]

    def _block_file(self, position: tuple[int, ...]) -> Path:
        return self._folder.joinpath(*map(str, position[::-1]))

    def read_chunk(self, position: tuple[int, ...]) -> np.ndarray | None:
        if not self._block_file(position).exists():
            return None
        path = self.name.strip("/")
        block = n5zarr.read_block(self.file.filename, path, position[::-1])
        assert block is not None
        is_whole = math.prod(block.header.block_shape) == len(block.data)
        return np.reshape(block.data, block.header.block_shape[::-1] if is_whole else -1)

    def write_chunk(self, position: tuple[int, ...], data: Any, varlen: bool = False) -> None:
        if not varlen:
            edges = zip(position, self.chunks, self.shape, strict=True)
            box = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in edges)
            if data.dtype != self.dtype or data.shape != tuple(s.stop - s.start for s in box):
                raise TypeError("expected a block of the dataset's type and shape")
            self._node[box] = data
            return
        path = self.name.strip("/")
        n5zarr.write_block(
            self.file.filename, path, position[::-1], data, block_shape=self.chunks[::-1]
        )
