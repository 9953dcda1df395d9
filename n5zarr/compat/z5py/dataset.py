"""Datasets: boxes in z5py's indexing, single chunks, options of compressions, and attributes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from numbers import Number
from operator import add, attrgetter, mul
from types import EllipsisType
from typing import Any, cast

import numpy as np

from n5zarr.arrays.box import Box
from n5zarr.codecs.block import Block, parse_block
from n5zarr.errors import ErrorsAt, N5UnrepresentableError
from n5zarr.format import (
    BlockHeader,
    BlockMode,
    block_path,
    compression_to_json,
    normalize_path,
    to_c,
    to_n5,
)
from n5zarr.format.order import CTuple, N5Tuple
from n5zarr.metadata.attributes import get_attribute, remove_attribute, set_attribute
from n5zarr.storage.requests import Exists, Get, request_each
from n5zarr.store.blocks import write_block

# z5py's options, each with N5's member and the default
OPTIONS: Mapping[str, Mapping[str, tuple[str, object]]] = {
    "raw": {},
    "gzip": {"level": ("level", 5)},
    "bzip2": {"level": ("blockSize", 5)},
    "xz": {"level": ("preset", 6)},
    "lz4": {"level": ("blockSize", 6)},
    "zstd": {"level": ("level", 3)},
    "blosc": {
        "codec": ("cname", "lz4"),
        "level": ("clevel", 5),
        "shuffle": ("shuffle", 1),
        "blocksize": ("blocksize", 0),
    },
}
OWN = frozenset({"dimensions", "blockSize", "dataType", "compression", "compressionType"})

_coders: dict[type, Any] = {}


def set_json_encoder(encoder: type | None, base: type = json.JSONEncoder) -> None:
    """Choose the encoder of attributes; None for json's own."""
    if encoder is not None and not issubclass(encoder, base):
        raise RuntimeError(f"expected a subclass of {base}, got {encoder}")
    _coders[base] = encoder


def set_json_decoder(decoder: type | None) -> None:
    """Choose the decoder of attributes; None for json's own."""
    set_json_encoder(decoder, json.JSONDecoder)


class AttributeManager(MutableMapping[str, Any]):
    """The attributes of a node, read from its document for each access.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Path of the node.
    hidden : frozenset of str, optional
        N5's own names, which are none.
    """

    def __init__(self, store: Any, path: str, hidden: frozenset[str] = frozenset()) -> None:
        self._container, self._path, self._hidden = store, path, hidden

    def _read(self) -> dict[str, Any]:
        found = json.loads(
            json.dumps(get_attribute(self._container, self._path)),
            cls=_coders.get(json.JSONDecoder),
        )
        return {key: value for key, value in found.items() if key not in self._hidden}

    def __getitem__(self, key: str) -> Any:
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __setitem__(self, key: str, value: object) -> None:
        document = json.dumps({key: value}, cls=_coders.get(json.JSONEncoder))
        for name, item in json.loads(document).items():  # json makes texts of keys
            self._change(set_attribute, name, item)

    def __delitem__(self, key: str) -> None:
        self._change(remove_attribute, key)

    def _change(self, change: Any, name: str, *value: object) -> None:
        check_writable(self._container)
        key = name.replace("/", "\\/").replace("[", "\\[")  # names are no paths
        try:
            change(self._container, self._path, key, *value)
        except N5UnrepresentableError as err:
            raise RuntimeError(str(err)) from err


def check_writable(store: Any) -> None:
    """Raise z5py's error if a file was opened to read only."""
    if store.read_only:
        raise ValueError(f'{store}: opened read-only, in z5py\'s default mode "r"; "a" writes, too')


class Dataset:
    """A dataset of a file; ``create_dataset``, ``require_dataset`` and ``[]`` of a group make it.

    ``n_threads`` is kept and has no effect: n5zarr takes the threads that the process may use.

    Parameters
    ----------
    parent : Group
        The group from which it was opened.
    array : zarr.Array
        Its elements.
    n_threads : int, optional
        A number that programs set.
    """

    compressors_n5, is_zarr, shards = tuple(OPTIONS), False, None

    def __init__(self, parent: Any, array: Any, n_threads: int = 1) -> None:
        self.parent, self.file, self.name = parent, parent.file, f"/{array.path}"
        self._array, self._at, self.n_threads = array, (array.store, array.path), n_threads
        self.attrs = AttributeManager(array.store, array.path, OWN)
        self.shape, self.dtype = array.shape, array.dtype
        self.ndim, self.size, self.chunks = array.ndim, array.size, array.chunks
        self.chunks_per_dimension, self.number_of_chunks = list(array.cdata_shape), array.nchunks
        self._types = attrgetter("data_type", "compression")(array.store.node(array.path).dataset)

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"Dataset has no {name!r}; arrays that n5zarr.open gives may have it")

    @property
    def compression(self) -> str:
        """The type of the compression."""
        return str(compression_to_json(self._types[1])["type"])

    @property
    def compression_opts(self) -> dict[str, Any]:
        """The options of the compression, by z5py's names."""
        stored = compression_to_json(self._types[1])
        options = OPTIONS.get(str(stored["type"]), {})
        return {name: stored.get(member) for name, (member, _) in options.items()}

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, *_: object, **__: object) -> np.ndarray:
        return np.asarray(self[...], dtype)

    # -------------------------------------------------------------------------------- boxes

    def __getitem__(self, index: object) -> Any:
        box_of(index, self.shape)
        return self._array[index][()]

    def __setitem__(self, index: object, item: object) -> None:
        box = box_of(index, self.shape)
        check_writable(self._at[0])
        if 0 not in box.shape:
            values = _elements(item, box.shape, self.dtype)
            self._array[tuple(map(slice, box.start, box.stop))] = values

    def read_direct(self, dest: Any, source_sel: object = None, dest_sel: object = None) -> None:
        """Read a box into a box of an array."""
        found = self[... if source_sel is None else source_sel]
        dest[... if dest_sel is None else dest_sel] = found

    def write_direct(self, source: Any, source_sel: object = None, dest_sel: object = None) -> None:
        """Write a box of an array at the first element of a box."""
        start = box_of(... if dest_sel is None else dest_sel, self.shape).start
        self.write_subarray(start, source[... if source_sel is None else source_sel])

    def read_subarray(self, start: Sequence[int], stop: Sequence[int]) -> np.ndarray:
        """Read a box in the dataset, from its first element to the one behind its last."""
        return cast("np.ndarray", self._array[self._inside(start, stop)])

    def write_subarray(self, start: Sequence[int], data: np.ndarray) -> None:
        """Write an array at its first element; it must lie in the dataset, and have its dtype."""
        self._check(data)
        self._array[self._inside(start, list(map(add, start, data.shape)))] = data

    def _inside(self, start: Sequence[int], stop: Sequence[int]) -> tuple[slice, ...]:
        if not all(0 <= a < b <= n for a, b, n in zip(start, stop, self.shape, strict=True)):
            raise RuntimeError(f"Request is out of range of {self.shape} or empty: {start}, {stop}")
        return tuple(map(slice, start, stop))

    def _check(self, data: np.ndarray) -> None:
        check_writable(self._at[0])
        if data.dtype != self.dtype:
            raise RuntimeError(f"Request has wrong type: expected {self.dtype}, got {data.dtype}")

    # ------------------------------------------------------------------------------- chunks

    def chunk_exists(self, chunk_indices: Sequence[int]) -> bool:
        """Whether a chunk is stored."""
        return bool(self._ask(Exists, chunk_indices))

    def read_chunk(self, chunk_indices: Sequence[int]) -> np.ndarray | None:
        """Read a chunk; None if it is not stored, the flat elements of a varlength one."""
        data = self._ask(Get, chunk_indices)
        if data is None:
            return None
        with ErrorsAt(f"{self.file.filename}: {self.name}: chunk {tuple(chunk_indices)}"):
            block = parse_block(memoryview(data), self.ndim, *self._types)
        if block.header.mode is BlockMode.VARLENGTH:
            return np.asarray(block.data)
        inside = tuple(map(slice, self.get_chunk_shape(chunk_indices)))  # other programs pad blocks
        return np.reshape(block.data, to_c(block.header.block_shape))[inside]

    def write_chunk(
        self,
        chunk_indices: Sequence[int],
        data: np.ndarray,
        varlen: bool = False,
    ) -> None:
        """Write a chunk; one of varlength may have any number of elements."""
        self._check(data)
        shape = self.get_chunk_shape(chunk_indices)
        if varlen:
            header = BlockHeader(
                mode=BlockMode.VARLENGTH, block_shape=to_n5(CTuple(shape)), n_elements=data.size
            )
            write_block(*self._at, to_n5(chunk_indices), Block(header, data.reshape(-1)))
        elif data.size != math.prod(shape):
            raise RuntimeError(f"Chunk data has the wrong number of elements: {data.size}, {shape}")
        else:
            self.write_subarray(self._chunk(chunk_indices)[0], data.reshape(shape))

    def get_chunk_shape(self, chunk_indices: Sequence[int]) -> tuple[int, ...]:
        """Return the extent of a chunk in the dataset."""
        return tuple(b - a for a, b in zip(*self._chunk(chunk_indices), strict=True))

    def _chunk(self, chunk_indices: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the first element of a chunk, and the one behind its last."""
        start = list(map(mul, chunk_indices, self.chunks))
        stop = list(map(min, map(add, start, self.chunks), self.shape))
        if len(chunk_indices) != self.ndim or not all(
            0 <= a < b for a, b in zip(start, stop, strict=True)
        ):
            raise RuntimeError(f"Invalid chunk: {chunk_indices}")
        return start, stop

    def _ask(self, request: Callable[[str], Any], chunk_indices: Sequence[int]) -> Any:
        key = normalize_path(f"{self._at[1]}/{block_path(N5Tuple(to_n5(chunk_indices)))}")
        return self._at[0].run(request_each([request(key)]))[0]


def box_of(index: object, shape: tuple[int, ...]) -> Box:
    """Return the box that an index selects.

    Raises
    ------
    TypeError, ValueError
        It has other parts than numbers, slices and an ellipsis, or is no box: a number is outside,
        a slice has a step, or there are too many parts.
    """
    box = Box.of(index, shape, may_be_empty=True)
    if box is None or box.step is not None:
        parts = index if isinstance(index, tuple) else (index,)
        known = [isinstance(part, Number | slice | EllipsisType) for part in parts]
        raise (ValueError if all(known) and len(known) <= len(shape) + 1 else TypeError)(
            f"Advanced selection inappropriate: expected numbers within {shape}, slices of step 1 "
            f"and an ellipsis, got {index!r}; n5zarr.open gives arrays that take steps and lists"
        )
    return box


def _elements(item: object, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return one element, or those of a box, which wrap if the dtype cannot hold them."""
    if isinstance(item, Number):
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(item).astype(dtype)
    try:
        values = np.asarray(item, dtype, order="C")
    except ValueError as err:
        raise TypeError(f"No conversion path to {dtype}: {err}") from err
    except TypeError as err:
        raise OSError(f"no conversion path to {dtype}: {err}") from err
    if _core(values.shape) != _core(shape):
        raise ValueError(
            f"could not broadcast input array from shape {values.shape} into shape {shape}; "
            "only axes of one element may be added or dropped, at either end"
        )
    return values.reshape(shape)


def _core(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without the axes of one element at both ends."""
    longer = [axis for axis, n in enumerate(shape) if n != 1] or [0]
    return shape[longer[0] : longer[-1] + 1]
