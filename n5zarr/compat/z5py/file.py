"""Files and groups: mappings of names to groups and datasets, which they create and remove."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import zarr
from zarr.errors import ContainsGroupError

from n5zarr._zarr import sync
from n5zarr.arrays.creating import create_array
from n5zarr.arrays.group import with_fast_path
from n5zarr.arrays.opening import open_array, open_group
from n5zarr.compat.z5py.dataset import OPTIONS, AttributeManager, Dataset, check_writable
from n5zarr.errors import N5UnsupportedError
from n5zarr.format import GroupAttributes, normalize_path
from n5zarr.store.n5_store import N5Store

if TYPE_CHECKING:
    import numpy.typing as npt

_TYPES = [np.dtype(f"{kind}{n}") for n in (1, 2, 4, 8) for kind in "iuf" if n > 2 or kind != "f"]


class Group(Mapping[str, Any]):
    """A group of a file; ``create_group``, ``require_group`` and ``[]`` of a file make it.

    Parameters
    ----------
    parent : Group or None
        The group from which it was opened; None for a file.
    store : N5Store
        The container.
    path : str
        Its path.
    """

    is_zarr = False

    def __init__(self, parent: Group | None, store: N5Store, path: str) -> None:
        self._container, self._path, self.name = store, path, f"/{path}"
        self.parent: Group = self if parent is None else parent
        self.file: Group = self if parent is None else parent.file
        self.attrs = AttributeManager(store, path)

    def _at(self, name: str) -> str:
        return normalize_path(f"{self._path}/{name}")

    def __iter__(self) -> Iterator[str]:
        return open_group(self._container, path=self._path).keys()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"Group has no {name!r}; docs/migration/z5py.md has n5zarr's ways")

    def __contains__(self, name: object) -> bool:
        return self._container.node(self._at(str(name))) is not None

    def __getitem__(self, name: str) -> Any:
        path = self._at(name)
        node = self._container.node(path)
        if node is None:
            raise KeyError(f"Key {name} does not exist")
        if isinstance(node, GroupAttributes):
            return Group(self, self._container, path)
        mode: Any = "r" if self._container.read_only else "r+"
        return Dataset(self, open_array(self._container, mode, path=path))

    def __delitem__(self, name: str) -> None:
        check_writable(self._container)
        sync(self._container.delete_dir(self[name].name))

    def visititems(self, func: Callable[[str, Any], Any]) -> Any:
        """Call a function with path and object of all below, until it returns something."""
        for name, node in self.items():
            found = func(name, node)
            if found is None and isinstance(node, Group):
                found = node.visititems(
                    lambda path, at, above=name: func(f"{above}/{path}", at)  # type: ignore[misc]
                )
            if found is not None:
                return found
        return None

    def create_group(self, name: str) -> Group:
        """Create a group, and those above it."""
        check_writable(self._container)
        if name in self:
            raise KeyError(f"An object with name {name} already exists")
        open_group(self._container, "a", path=self._at(name))
        return Group(self, self._container, self._at(name))

    def require_group(self, name: str) -> Group:
        """Return a group, which is created if it does not exist."""
        found = self[name] if name in self else self.create_group(name)
        if not isinstance(found, Group):
            raise TypeError("Incompatible object (Dataset) already exists")
        return found

    def create_dataset(
        self,
        name: str,
        shape: Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        data: np.ndarray | None = None,
        chunks: Sequence[int] | None = None,
        compression: str | None = None,
        fillvalue: float = 0,
        n_threads: int = 1,
        **compression_options: Any,
    ) -> Dataset:
        """Create a dataset, and the groups above it.

        Parameters
        ----------
        name : str
            Its path below the group.
        shape, dtype, data : optional
            Its extent and one of N5's ten types, or elements that have both.
        chunks : tuple of int, optional
            Extent of a block, at most the shape; by default a cube of 64**3 elements.
        compression, **compression_options : optional
            Its type and options; by default gzip of level 5.
        fillvalue : number, optional
            What this object reads where no block is stored; N5 does not keep it.
        n_threads : int, optional
            A number that the dataset keeps.
        """
        check_writable(self._container)
        if name in self:
            raise KeyError(f"Dataset {name} is already existing.")
        shape, dtype = _like(shape, dtype, data)
        edge = round((64**3) ** (1 / max(1, len(shape))))
        size = [edge] * len(shape) if chunks is None else chunks
        if len(size) != len(shape):
            raise RuntimeError(f"Chunks {size} must have same length as shape {shape}")
        array = create_array(
            self._container,
            path=self._at(name),
            shape=shape,
            dtype=dtype,
            chunks=[max(1, min(pair)) for pair in zip(size, shape, strict=True)],
            compression=_compression(compression or "gzip", compression_options),
        )
        made = Dataset(self, _filled(array, fillvalue) if fillvalue else array, n_threads)
        if data is not None:
            made[...] = data
        return made

    def require_dataset(
        self,
        name: str,
        shape: Sequence[int],
        dtype: npt.DTypeLike | None = None,
        chunks: Sequence[int] | None = None,
        n_threads: int = 1,
        **options: Any,
    ) -> Any:
        """Return a dataset of this shape, type and chunks, which is created if it is missing."""
        if name not in self:
            return self.create_dataset(
                name, shape, dtype, chunks=chunks, n_threads=n_threads, **options
            )
        found = self[name]
        wanted = {
            "shape": tuple(shape),
            "chunks": None if chunks is None else tuple(chunks),
            "dtype": dtype,
        }
        for what, value in wanted.items():
            if value is not None and value != getattr(found, what, "a group"):
                raise TypeError(
                    f"{name}: existing {what} {getattr(found, what, found)}, new {value}"
                )
        found.n_threads = n_threads
        return found


class File(Group):
    """A container of N5 in local files; it need not be closed.

    Parameters
    ----------
    path : path
        Its folder.
    mode : {"r", "r+", "a", "w", "w-", "x"}, optional
        As of h5py: read an existing file; read and write one; create it if it is missing; create
        it anew; create it if it is missing, or raise.
    use_zarr_format : bool, optional
        Must not be true: files are N5.
    **of_zarr : optional
        What z5py takes for Zarr.

    Raises
    ------
    OSError
        The file is missing, or exists.
    RuntimeError
        It is Zarr, as an ``N5UnsupportedError``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: str = "r",
        use_zarr_format: bool | None = None,
        **of_zarr: Any,
    ) -> None:
        self.filename = os.fspath(path)
        suffix, documents = Path(path).suffix.lower(), (".zgroup", ".zarray", "zarr.json")
        is_zarr = suffix != ".n5" and any(Path(path, name).exists() for name in documents)
        if use_zarr_format or isinstance(self, ZarrFile) or is_zarr or suffix in (".zarr", ".zr"):
            raise N5UnsupportedError(
                "expected N5, got Zarr; zarr.open and zarr.open_group open it",
                kind="foreign",
                where=self.filename,
            )
        own: Any = "w-" if mode == "x" else mode
        store = N5Store(path, codecs="n5", zarr_format=3, mode=own)
        try:
            open_group(store, own)
        except (ContainsGroupError, FileExistsError) as err:
            raise FileExistsError(f"{self.filename}: {err}") from err
        super().__init__(None, store, "")

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class N5File(File):
    """A container of N5."""


class ZarrFile(File):
    """A name for ``isinstance`` and annotations: making one raises the error of `File`."""


def _like(
    shape: Sequence[int] | None, dtype: npt.DTypeLike | None, data: np.ndarray | None
) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and the type of a new dataset; z5py converts no elements."""
    if data is None and (shape is None or dtype is None):
        raise TypeError("One of shape and dtype, or data, must be specified")
    extent = None if shape is None else tuple(shape)
    like = np.broadcast_to(np.empty((), dtype), extent or ()) if data is None else data
    if extent not in (None, like.shape) or dtype not in (None, like.dtype):
        raise ValueError(f"Shape or datatype is incompatible with data: {like.shape}, {like.dtype}")
    if like.dtype not in _TYPES:
        raise ValueError(
            f"Invalid data type {like.dtype!r} for dataset: expected one of N5's ten in native "
            "byte order; n5zarr.create_array takes others"
        )
    return like.shape, like.dtype


def _compression(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return a compression in N5's terms."""
    if name not in OPTIONS:
        raise ValueError(f'Compression filter "{name}" is unavailable: expected {list(OPTIONS)}')
    given = {"level" if option == "clevel" else option: given[option] for option in given}
    if not given.keys() - {"nthreads"} <= OPTIONS[name].keys():
        raise RuntimeError(f"Invalid options for {name} compression: {list(given)}")
    return {"type": name} | {m: given.get(o, v) for o, (m, v) in OPTIONS[name].items()}


def _filled(array: Any, fillvalue: float) -> Any:
    """Return an array that reads a value where no block is stored, and stores blocks of it."""
    own = array.async_array
    value = np.asarray(fillvalue).astype(array.dtype)[()]
    document: Any = {
        **own.metadata.to_dict(),
        "fill_value": own.metadata.dtype.to_json_scalar(value, zarr_format=3),
    }
    again = zarr.Array(zarr.AsyncArray(document, own.store_path))
    return with_fast_path(again).with_config({"write_empty_chunks": True})
