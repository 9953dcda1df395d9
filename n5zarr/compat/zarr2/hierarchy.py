"""Groups with the names of zarr 2, and what opens and copies them: also ``zarr.convenience``."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import partialmethod
from typing import Any, override

import numpy as np
import zarr

from n5zarr._zarr import async_group
from n5zarr.arrays.group import N5Group
from n5zarr.compat.zarr2.core import (
    Array,
    OpenedByPath,
    array,
    create,
    find,
    like,
    open_array,
    with_names,
)
from n5zarr.compat.zarr2.errors import ContainsArrayError, CopyError, absent
from n5zarr.compat.zarr2.storage import store_of
from n5zarr.errors import option_error
from n5zarr.format.path import join, normalize_path

_WAYS = {
    "create_groups": "group.require_groups(*names)",
    "move": "os.rename of the folder, then open it again",
    "visitvalues": "group.visititems(lambda name, node: ...)",
}


class Group(OpenedByPath, N5Group, MutableMapping[str, Any]):  # type: ignore[misc] # names are text
    """A :class:`zarr.Group` with the names of zarr 2; made as an :class:`OpenedByPath`."""

    inner = zarr.AsyncGroup
    existing = staticmethod(lambda store, mode, path: open_group(store, mode, path=path))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self:
            raise absent("Group", name, _WAYS)
        return self[name]

    def __len__(self) -> int:
        return self.nmembers()

    @override
    def __setitem__(self, name: str, value: Any) -> None:
        self.create_dataset(name, value, overwrite=True)

    @override
    def __delitem__(self, name: str) -> None:
        if name not in self:  # of which zarr 3 is silent
            raise KeyError(name)
        super().__delitem__(name)

    @override
    def move(self, source: str, dest: str) -> None:
        raise absent("Group", "move", _WAYS, NotImplementedError)

    @override
    def shown(self, node: Any) -> Any:
        return shown(node)

    @override
    def create_dataset(self, name: str, data: Any = None, **options: Any) -> Array:  # type: ignore[override]
        """Make an array below the group; options are those of :func:`create`."""
        options |= {"store": self.store, "path": join(self.path, normalize_path(name))}
        return create(**options) if data is None else array(data, **options)

    array = create = empty = zeros = create_dataset

    ones = partialmethod(create_dataset, fill_value=1)

    def full(self, name: str, fill_value: object, **options: Any) -> Array:
        """Make an array with another fill value, which only Zarr has."""
        return self.create_dataset(name, fill_value=fill_value, **options)

    def zeros_like(self, name: str, data: Any, **options: Any) -> Array:
        """Make an array of the same shape, type, chunks and compressor."""
        return self.create_dataset(name, **like(data, **options))

    empty_like = full_like = zeros_like

    @override
    def arrays(self, recurse: bool = False) -> Any:
        """Yield names and arrays; if ``recurse``, also those of the groups below."""
        for name, node in self.members(None if recurse else 0):
            if isinstance(node, zarr.Array):
                yield name.rpartition("/")[2], node

    @override
    def array_keys(self, recurse: bool = False) -> Any:
        yield from (name for name, _ in self.arrays(recurse))

    @override
    def tree(self, expand: object = None, level: int | None = None, **options: Any) -> Any:
        return super().tree(level=level, **options)

    def visit(self, visit: Any) -> Any:
        """Call a function with the path of each node below, until it returns a value."""
        return self.visititems(lambda name, _: visit(name))

    visitkeys = visit


def shown(node: Any) -> Array | Group:
    """Return an array or a group with the names of zarr 2."""
    return Group(async_group(node)) if isinstance(node, zarr.Group) else with_names(node)


def open_group(
    store: Any = None,
    mode: str = "a",
    *,
    path: str | None = None,
    storage_options: Any = None,
    **_: object,
) -> Group:
    """Open a group, or make one.

    Parameters
    ----------
    store, mode, path, storage_options : optional
        As for :func:`open`.
    **_ : optional
        Without effect: of chunks, caches and synchronizers.

    Raises
    ------
    ContainsArrayError
        It is an array.
    """
    found = shown(find(store_of(store, storage_options), mode.replace("x", "w-"), path))
    if not isinstance(found, Group):
        raise ContainsArrayError(f"{found.store_path}: expected a group, got an array")
    return found


def group(store: Any = None, overwrite: bool = False, **options: Any) -> Group:
    """Return the group of a store, which is made if nothing is there; as :func:`open_group`."""
    return open_group(store, "w" if overwrite else "a", **options)


def open(
    store: object = None,
    mode: str = "a",
    *,
    path: str | None = None,
    storage_options: Any = None,
    **options: Any,
) -> Any:
    """Open an array or a group, or make one.

    Parameters
    ----------
    store : path, URL or store, optional
        What ends in ``.n5`` is N5; another path is Zarr v2.
    mode : {"r", "r+", "a", "w", "w-", "x"}, optional
        As in zarr 2.
    path : str, optional
        Path of the node in the store.
    storage_options : dict, optional
        Options of the file system of a URL.
    **options : optional
        With ``shape``, those of :func:`create`; others are without effect.

    Raises
    ------
    PathNotFoundError
        Nothing is there, and the mode does not make it; a ValueError, as in zarr 2.
    """
    made = store_of(store, storage_options)
    if "shape" in options:
        return open_array(made, mode, path=path, **options)
    return shown(find(made, mode.replace("x", "w-"), path))


def save(store: object, *arrays: Any, path: str | None = None, **named: Any) -> None:
    """Save an array, or several by names; what is there is replaced."""
    if len(arrays) == 1 and not named:
        array(arrays[0], store=store, path=path, overwrite=True)
    else:
        numbered = {f"arr_{i}": each for i, each in enumerate(arrays)}
        open_group(store, "w", path=path).update(numbered | named)


def load(store: object, path: str | None = None) -> np.ndarray | dict[str, np.ndarray]:
    """Read an array, or all arrays of a group by their names."""
    found: Any = open(store, "r", path=path)
    return (
        np.asarray(found)
        if isinstance(found, Array)
        else {name: each[...] for name, each in found.arrays()}
    )


def copy(
    source: Any,
    dest: Group,
    name: str | None = None,
    shallow: bool = False,
    without_attrs: bool = False,
    log: object = None,
    if_exists: str = "raise",
    **options: Any,
) -> tuple[int, ...]:
    """Copy an array or a group, of Zarr or HDF5, into a group; arrays chunk by chunk.

    Parameters
    ----------
    source : array or group
        What to copy.
    dest : Group
        Where to.
    name : str, optional
        Its name there; by default that of the source.
    shallow, without_attrs : bool, optional
        Whether to leave out groups in the group, or attributes.
    log : optional
        Without effect.
    if_exists : {"raise", "replace", "skip"}, optional
        What to do with an array that is there.
    **options : optional
        Those of :func:`create`.

    Returns
    -------
    tuple of int
        Number of nodes that are copied, of those that are skipped, and of bytes.

    Raises
    ------
    CopyError
        There is an array of this name.
    """
    if options.pop("dry_run", False):
        raise option_error("dry_run: expected False; n5zarr.convert has dry_run=True")
    name = name or source.name.rpartition("/")[2]
    if if_exists != "replace" and isinstance(dest.get(name), Array):
        if if_exists == "skip":
            return 0, 1, 0
        raise CopyError(f"{dest.name}: has an array {name!r}; if_exists='replace' or 'skip'")
    is_array = hasattr(source, "shape")
    made: Any = _copied(source, dest, name, options) if is_array else dest.require_group(name)
    if not without_attrs:
        made.attrs.update(dict(source.attrs))
    if is_array:
        return 1, 0, made.nbytes
    below = {key: n for key, n in source.items() if hasattr(n, "shape") or not shallow}
    n_copied, n_skipped, n_bytes = copy_all(
        below, made, without_attrs=without_attrs, if_exists=if_exists, **options
    )
    return 1 + n_copied, n_skipped, n_bytes


def copy_all(source: Any, dest: Any, **options: Any) -> tuple[int, ...]:
    """Copy all that is in a group, and its attributes; as :func:`copy`."""
    if not options.get("without_attrs"):
        dest.attrs.update(dict(getattr(source, "attrs", {})))
    counts = [copy(node, dest, key, **options) for key, node in source.items()]
    return tuple(map(sum, zip((0, 0, 0), *counts, strict=True)))


def _copied(source: Any, dest: Group, name: str, options: dict[str, Any]) -> Array:
    fill_value = getattr(source, "fill_value", getattr(source, "fillvalue", 0))
    own = {"fill_value": fill_value, "overwrite": True, **options}
    made = dest.create_dataset(name, **like(source, **own))
    for chunk in np.ndindex(made.cdata_shape):
        box = tuple(slice(i * n, (i + 1) * n) for i, n in zip(chunk, made.chunks, strict=True))
        made[box] = source[box]
    return made
