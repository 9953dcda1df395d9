"""Find the dataset ``s0`` of a pyramid, or say how to make one of another dataset."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarr.abc.store import Store
from zarr.storage import MemoryStore

from n5zarr.container.options import require
from n5zarr.conventions.levels import entries_of
from n5zarr.errors import N5UnsupportedError, option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS, format_of_name
from n5zarr.format.path import join
from n5zarr.storage.requests import list_each, put_each, read_each, read_key
from n5zarr.storage.url import is_url
from n5zarr.store.geometry import described, placed_datasets
from n5zarr.store.levels import is_level
from n5zarr.store.locating import open_container
from n5zarr.store.location import check_writable_store
from n5zarr.store.missing_nodes import datasets_below, existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.pyramid.n5_image import N5Image
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.errors import N5UnrepresentableError
    from n5zarr.storage.place import Place
    from n5zarr.store.geometry import ArrayGeometry

__all__ = [
    "check_elements",
    "find_finest",
    "is_coarser",
    "is_inner",
    "model_of",
    "open_writable",
    "positions_of",
]


def open_writable(place: Place, path: str) -> tuple[N5Store, str]:
    """Open the container of a location for writing; also return the path of the node in it.

    Raises
    ------
    N5UnsupportedError
        The store is read-only, or cannot delete (``kind="read-only"``).
    """
    store, path = open_container(place, path)
    if store.codecs != "n5":  # a given store has its own codecs, which are slower
        store = N5Store(
            store.storage,
            codecs="n5",
            zarr_format=3,
            axis_order=store.axis_order,
            durability=store.durability,
            read_only=store.read_only,
        )
    where = f"{store}: {path or '/'}"
    check_writable_store(store, where)
    if not store.store.supports_deletes:  # the marks of levels that are incomplete would remain
        message = f"expected a store that can delete, got a {type(store.store).__name__}"
        raise N5UnsupportedError(message, kind="read-only", where=where)
    return store, path


def is_coarser(store: N5Store, path: str) -> bool:
    """Whether a dataset is a level beside an ``s0``, and not one that only has such a name."""
    group, _, name = path.rpartition("/")
    is_other = is_level(name) and name != "s0"
    return is_other and isinstance(store.node(join(group, "s0")), DatasetView)


def is_inner(to: str) -> bool:
    """Whether a name is a path in the container of the dataset.

    Examples
    --------
    >>> [is_inner(to) for to in ("em/pyramid", "out.n5/em", "/data/em", "./em", "s3://b/em")]
    [True, False, False, False, False]
    """
    is_location = is_url(to) or to.startswith(("/", "\\", ".", "~")) or any(c in to for c in "|:")
    return not is_location and not any(map(format_of_name, to.split("/")))


def find_finest(place: Place, path: str, convention: str) -> N5Image:
    """Open a container, and find ``s0``.

    Raises
    ------
    N5UnrepresentableError
        The group has no ``s0`` (``kind="option"``).
    """
    given = join(str(place.location), place.path, path)
    store, path = open_writable(place, path)
    where = f"{store}: {path or '/'}"
    node = existing_node(store, path, "s0, or its group")
    finest = path if isinstance(node, DatasetView) else join(path, "s0")
    view = node if isinstance(node, DatasetView) else store.node(finest)
    if not isinstance(view, DatasetView):
        raise option_error(
            f"expected the group of a dataset s0, got one without; "
            f"datasets in it: {datasets_below(store, path) or 'none'}",
            where=where,
        )
    if finest.rpartition("/")[2] != "s0":
        raise _other_name(store, path, None if isinstance(place.location, Store) else given)
    check_elements(view, f"{store}: {finest}")
    (placed,) = placed_datasets(store, finest)
    return N5Image.of(store, placed, convention)


def _other_name(store: N5Store, path: str, given: str | None) -> N5UnrepresentableError:
    """Make the error of a dataset with another name than ``s0``, with the commands that help."""
    name = path.rpartition("/")[2]
    message = (
        "expected the dataset s0 of a group, beside which viewers look for coarser levels, got "
        f"{name or 'the root'}"
    )
    where = f"{store}: {path or '/'}"
    if is_coarser(store, path):
        return option_error(f"{message}: give s0, or its group", where=where)
    to = f"{path}-pyramid" if path else f"{str(store).removesuffix('.n5')}-pyramid.n5"
    if path and not is_inner(to):
        to = join(str(store), to)
    moves = [] if given is None else _moves(store, path)
    way = "; mkdir and mv make its path that group, while no program writes to it" if moves else ""
    err = option_error(
        f"{message}: to={to!r} (--to) copies it to s0 of another group{way}", where=where
    )
    if given is not None:
        given = f"./{given}" if given.startswith("-") else given  # which is no option
        err.add_note(f"n5zarr pyramid {shlex.quote(given)} --to {shlex.quote(to)}")
    for command in moves:
        err.add_note(command)
    return err


def _moves(store: N5Store, path: str) -> list[str]:
    """Return the commands that move a local dataset to ``s0`` below its own path.

    None where more depends on the path: links, documents of Zarr, groups that list the dataset, or
    its position.
    """
    root = store.storage.root
    if root is None or not path:  # the root has the version of the container
        return []
    place = Path(root, path)
    beside = place.with_name(f"{place.name}-group")
    (entries,) = store.run(list_each([path]))
    above = store.run(store.container.nodes.above(path))
    if (
        place.is_symlink()
        or place.is_junction()
        or beside.exists()
        or any(entry.name in {"s0", *ZARR_DOCUMENTS} for entry in entries)
        or next(entries_of(path.split("/"), above), None) is not None
    ):
        return []
    document = store.run(read_key(join(path, ATTRIBUTES_JSON))) or b"{}"
    model = model_of(store, path, {join(path, ATTRIBUTES_JSON): b"{}"})
    model.storage.run(put_each([(join(path, "s0", ATTRIBUTES_JSON), document)]))
    (before,), (after,) = placed_datasets(store, path), placed_datasets(model, join(path, "s0"))
    if positions_of(described(before)) != positions_of(described(after)):
        return []
    old, new = (shlex.quote(str(each)) for each in (place, beside))
    return [f"mkdir {new}", f"mv {old} {new}/s0", f"mv {new} {old}"]


def model_of(store: N5Store, group: str, documents: Mapping[str, bytes]) -> N5Store:
    """Return a container in memory with the documents of a group and those above it.

    Parameters
    ----------
    store : N5Store
        The container of the group.
    group : str
        The group.
    documents : mapping of str to bytes
        Documents that will be others, by key.
    """
    names = group.split("/") if group else []
    keys = [join(*names[:n], ATTRIBUTES_JSON) for n in range(len(names) + 1)]
    found = zip(keys, store.run(read_each(keys)), strict=True)
    held = {key: data for key, data in found if data is not None} | {**documents}
    model = N5Store(MemoryStore(), codecs="n5", zarr_format=3, axis_order=store.axis_order)
    model.storage.run(put_each(held.items()))
    return model


def positions_of(found: ArrayGeometry) -> dict[str, Any]:
    """Return what :func:`n5zarr.set_geometry` takes to place a dataset there."""
    return {name: getattr(found, name) for name in ("names", "units", "scale", "translation")}


def check_elements(view: DatasetView, where: str) -> None:
    """Raise if an array has no elements, or its elements cannot be downsampled."""
    is_known = view.content in (Content.NUMBERS, Content.LABELS)
    if not is_known or view.kind.dtype.kind not in "biuf" or not view.ndim:
        what = view.content.value if view.content is not Content.NUMBERS else str(view.kind.dtype)
        raise N5UnsupportedError(
            f"expected a writable array of numbers, got {what}", kind="data-type", where=where
        )
    require(all(view.shape), f"expected an array with elements, got the shape {view.shape}", where)
