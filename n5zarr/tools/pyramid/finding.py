"""Find the dataset ``s0`` of a pyramid, make it of another dataset, or say how to make it."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zarr.abc.store import Store
from zarr.storage import MemoryStore

from n5zarr.container.axes import Placed
from n5zarr.container.options import require
from n5zarr.conventions.levels import entries_of
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError, option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS, format_of_name
from n5zarr.format.path import groups_above, join, normalize_path
from n5zarr.format.raw_json import RawObject
from n5zarr.format.version import VERSION_KEY
from n5zarr.images.from_n5 import n5_tree
from n5zarr.metadata.geometry import ArrayGeometry, described, placed_datasets
from n5zarr.metadata.levels import is_level
from n5zarr.metadata.set_geometry import set_geometry
from n5zarr.storage.place import Location, Place, place_of
from n5zarr.storage.requests import list_each, put_each, read_each, read_key
from n5zarr.storage.secrets import named
from n5zarr.storage.url import is_url
from n5zarr.store.locating import locate, open_container
from n5zarr.store.location import root_of
from n5zarr.store.missing_nodes import datasets_below, existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.checks import check_outside, check_places
from n5zarr.tools.convert.places import open_destination
from n5zarr.tools.convert.target import Layout
from n5zarr.tools.convert.writing import Plan, verify_copies
from n5zarr.tools.jobs.incomplete import read_incomplete
from n5zarr.tools.pyramid.model import PyramidOptions
from n5zarr.tools.pyramid.n5_image import N5Image, coarser_levels, unlist
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content


def _open_writable(place: Place, path: str) -> tuple[N5Store, str]:
    """Open the container of a location for writing; also return the path of the node in it.

    Raises
    ------
    N5UnsupportedError
        The store is read-only, or cannot delete (``kind="read-only"``).
    """
    store, path = open_container(place, path, writes=True)
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
    if not store.store.supports_deletes:  # the marks of levels that are incomplete would remain
        message = f"expected a store that can delete, got a {type(store.store).__name__}"
        raise N5UnsupportedError(message, kind="read-only", where=where)
    return store, path


def _is_inner(to: str) -> bool:
    """Whether a name is a path in the container of the dataset.

    Examples
    --------
    >>> [_is_inner(to) for to in ("em/pyramid", "out.n5/em", "/data/em", "./em", "s3://b/em")]
    [True, False, False, False, False]
    """
    is_location = is_url(to) or to.startswith(("/", "\\", ".", "~")) or any(c in to for c in "|:")
    return not is_location and not any(map(format_of_name, to.split("/")))


def find_finest(place: Place, path: str, options: PyramidOptions) -> N5Image:
    """Open a container, and find ``s0``; errors print commands with the options of the user.

    Raises
    ------
    N5UnrepresentableError
        The group has no ``s0`` (``kind="option"``).
    """
    given = join(str(place.location), place.path, path)
    store, path = _open_writable(place, path)
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
        raise _other_name(
            store, path, None if isinstance(place.location, Store) else given, options
        )
    _check_elements(view, f"{store}: {finest}")
    (placed,) = placed_datasets(store, finest)
    return N5Image.of(store, placed, options.convention)


def _other_name(
    store: N5Store, path: str, given: str | None, options: PyramidOptions
) -> N5UnrepresentableError:
    """Make the error of a dataset with another name than ``s0``, with the commands that help."""
    group, _, name = path.rpartition("/")
    message = (
        "expected the dataset s0 of a group, beside which viewers look for coarser levels, got "
        f"{name or 'the root'}"
    )
    where = f"{store}: {path or '/'}"
    if is_level(name) and isinstance(store.node(join(group, "s0")), DatasetView):
        return option_error(f"{message}: give s0, or its group", where=where)
    to = f"{path}-pyramid" if path else f"{str(store).removesuffix('.n5')}-pyramid.n5"
    if path and not _is_inner(to):
        to = join(str(store), to)
    moves = [] if given is None else _moves(store, path)
    way = "; mkdir and mv make its path that group, while no program writes to it" if moves else ""
    err = option_error(
        f"{message}: to={to!r} (--to) copies it to s0 of another group{way}", where=where
    )
    if given is not None:
        given = named(f"./{given}" if given.startswith("-") else given)  # which is no option
        command, chosen = f"n5zarr pyramid {shlex.quote(given)}", _options_of_levels(options)
        err.add_note(f"{command} --to {shlex.quote(to)}{chosen}")
        for line in ["or, without a copy:", *moves, f"{command}{chosen}"] if moves else []:
            err.add_note(line)
    return err


def _options_of_levels(options: PyramidOptions) -> str:
    """Return the options of the levels as in a command, without those that have their default."""
    text = ""
    for name in ("factors", "levels", "method", "convention", "compression", "chunks"):
        value = getattr(options, name)
        if isinstance(value, tuple | list):
            value = ",".join(map(str, value))
        elif isinstance(value, Mapping):
            value = json.dumps({**value})
        if value not in (None, "auto"):
            text += f" --{name} {shlex.quote(str(value))}"
    return text


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
    model = _model_of(store, path, {join(path, ATTRIBUTES_JSON): b"{}"})
    model.storage.run(put_each([(join(path, "s0", ATTRIBUTES_JSON), document)]))
    (before,), (after,) = placed_datasets(store, path), placed_datasets(model, join(path, "s0"))
    if _positions_of(described(before)) != _positions_of(described(after)):
        return []
    old, new = (shlex.quote(str(each)) for each in (place, beside))
    return [f"mkdir {new}", f"mv {old} {new}/s0", f"mv {new} {old}"]


def _model_of(store: N5Store, group: str, documents: Mapping[str, bytes]) -> N5Store:
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
    keys = [join(path, ATTRIBUTES_JSON) for path in (*groups_above(group), group)]
    found = zip(keys, store.run(read_each(keys)), strict=True)
    held = {key: data for key, data in found if data is not None} | {**documents}
    model = N5Store(MemoryStore(), codecs="n5", zarr_format=3, axis_order=store.axis_order)
    model.storage.run(put_each(held.items()))
    return model


def _positions_of(found: ArrayGeometry) -> dict[str, Any]:
    """Return what :func:`n5zarr.set_geometry` takes to place a dataset there."""
    return {name: getattr(found, name) for name in ("names", "units", "scale", "translation")}


def _check_elements(view: DatasetView, where: str) -> None:
    """Raise if an array has no elements, or its elements cannot be downsampled."""
    is_known = view.content in (Content.NUMBERS, Content.LABELS)
    if not is_known or view.kind.dtype.kind not in "biuf" or not view.ndim:
        what = view.content.value if view.content is not Content.NUMBERS else str(view.kind.dtype)
        raise N5UnsupportedError(
            f"expected a writable array of numbers, got {what}", kind="data-type", where=where
        )
    require(all(view.shape), f"expected an array with elements, got the shape {view.shape}", where)


# ---------------------------------------------------------------------- s0 of another dataset


@dataclass(frozen=True, eq=False)
class Copying:
    """A dataset that becomes ``s0`` of another group.

    Parameters
    ----------
    source : str
        Where it is, for the user.
    place : Place
        The new group.
    image : N5Image
        ``s0``, as it will be.
    plan : Plan
        How it is copied.
    """

    source: str
    place: Place
    image: N5Image
    plan: Plan

    def check(self, options: PyramidOptions) -> None:
        """Raise if it cannot be done, before anything is written."""
        if not (options.resume and self._is_copied()):
            self._run(options, dry_run=True)

    def run(self, options: PyramidOptions, removed: Sequence[str]) -> None:
        """Make ``s0``, or go on with a run that was interrupted.

        Parameters
        ----------
        options : PyramidOptions
            The options of the user.
        removed : sequence of str
            Names of the levels in the group that will be removed.
        """
        if not (options.resume and self._is_copied()):
            if options.overwrite and self.image.container.node(self.image.group) is not None:
                self.image.remove(["s0", *removed])
            self._run(options, dry_run=False)
        elif read_incomplete(self.image.store, self.image.full("s1")) is None:
            # levels are begun only when the copy is verified
            verify_copies(self.plan.copies, options.run)

    def _run(self, options: PyramidOptions, *, dry_run: bool) -> None:
        self.plan.run(
            {"task": "n5zarr pyramid --to"},
            time.monotonic(),
            overwrite=options.overwrite,
            resume=options.resume,
            verify=False,
            dry_run=dry_run,
        )

    def _is_copied(self) -> bool:
        """Whether a run has copied the dataset before; raise if ``s0`` is another dataset."""
        image, path = self.image, self.image.source.path
        if read_incomplete(image.store, path) is not None:
            return False
        there = image.container.node(path)
        if there is None:
            return False
        ours, other = image.placed.view.dataset, getattr(there, "dataset", None)
        members = ("dimensions", "block_size", "type_name", "compression")
        require(
            other is not None and all(getattr(ours, m) == getattr(other, m) for m in members),
            f"expected a copy of {self.source}, got another dataset; overwrite=True (--overwrite) "
            "removes it",
            f"{image.container}: {path}",
        )
        return True


def copying(place: Place, path: str, group: Place, options: PyramidOptions) -> Copying:
    """Plan to copy a dataset to ``s0`` of another group.

    Parameters
    ----------
    place, path : Place, str
        The dataset.
    group : Place
        The group; see :func:`group_of`.
    options : PyramidOptions
        The options of the user.

    Raises
    ------
    N5UnrepresentableError
        The location is no dataset, or the group cannot hold it (``kind="option"``).
    """
    located = locate(place, path)
    source, path = located.open(writes=False)
    where = f"{source}: {path or '/'}"
    view = existing_node(source, path, "a dataset")
    if not isinstance(view, DatasetView):
        raise option_error("to (--to): expected a dataset to copy, got a group", where=where)
    _check_elements(view, where)
    store, inner = _open_writable(group, "")
    finest = join(inner, "s0")
    require(
        path not in (inner, finest) or not source.storage.is_same_place(store.storage),
        f"to (--to): expected another group, got {inner or 'the root'}, which is the dataset or "
        "has it as s0",
        where,
    )
    root, tree = root_of(group), n5_tree(located)
    target = open_destination(replace(root, path=finest), "n5")
    check_places(tree, target)
    plan = Plan.of(tree, target, Layout.of(None, None, None), options.run, options.max_memory)
    removed = ["s0", *coarser_levels(store, inner)] if options.overwrite else []
    for name in removed:
        check_outside(tree, store.storage, join(inner, name))
    written = target.documents()[join(finest, ATTRIBUTES_JSON)]
    (placed,) = placed_datasets(source, path)
    s0, document = _future(store, inner, removed, written, placed)
    target.add_file(ATTRIBUTES_JSON, document)
    image = N5Image.of(store, s0, options.convention)
    return Copying(str(tree.name), replace(root, path=inner), image, plan)


def group_of(to: Location, place: Place, **access: Any) -> Place:  # noqa: ANN401 - those of place_of
    """Return the group that a user names: a path in the container of a dataset, or a location.

    Parameters
    ----------
    to : path, URL, zarr store
        What the user names.
    place : Place
        The dataset.
    **access : object
        ``storage_options`` and ``backend``, for URLs.

    Raises
    ------
    N5UnrepresentableError
        The dataset is in Zarr (``kind="option"``).
    """
    require(to != "", "to (--to): expected a group or a location, got an empty name")
    require(
        to not in ("/", "\\"),
        "to (--to): expected a group or a location, got the root of the file system; '.' is this "
        "directory",
    )
    if isinstance(to, str) and _is_inner(to):
        return replace(root_of(place), path=normalize_path(to))
    found = place_of(to, **access, one_of_two=True)
    is_zarr = any(format_of_name(name) == "zarr" for name in found.names)
    name = named(str(to))
    require(
        found.is_named("n5") or not is_zarr,
        f"to (--to): expected a group of N5, got {name}; n5zarr convert SOURCE {name} --ome and "
        f"then n5zarr pyramid {name} make a pyramid of OME-Zarr",
    )
    return found


def _future(
    store: N5Store, group: str, removed: Sequence[str], written: bytes, source: Placed
) -> tuple[Placed, bytes]:
    """Return ``s0`` as it will be in a group, and its document.

    Positions that the dataset has from attributes of groups above it, or from an XML, are written
    into its document.

    Parameters
    ----------
    store : N5Store
        The container of the group.
    group : str
        The group.
    removed : sequence of str
        Names of the levels in the group that will be removed.
    written : bytes
        The document of the dataset, as the copy alone writes it.
    source : Placed
        The dataset where it is.
    """
    model = _model_of(store, group, {})
    if removed and model.node(group) is not None:
        unlist(model, group, removed)
    document = RawObject.parse(written)
    document.remove(VERSION_KEY)
    finest = join(group, "s0")
    key = join(finest, ATTRIBUTES_JSON)
    model.storage.run(put_each([(key, document.to_bytes())]))
    (placed,) = placed_datasets(model, finest)
    before, after = map(described, (source, placed))
    if source.geometry is not None and _positions_of(before) != _positions_of(after):
        set_geometry(model, finest, convention="cosem", **_positions_of(before))
        (placed,) = placed_datasets(model, finest)
    return placed, model.run(read_key(key)) or document.to_bytes()
