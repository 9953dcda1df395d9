"""Make ``s0`` of a dataset with another name: copy it to a group."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from n5zarr.container.options import require
from n5zarr.errors import option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import format_of_name
from n5zarr.format.path import join, normalize_path
from n5zarr.format.raw_json import RawObject
from n5zarr.format.version import VERSION_KEY
from n5zarr.images.from_n5 import n5_tree
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import put_each, read_key
from n5zarr.store.geometry import described, placed_datasets
from n5zarr.store.locating import locate
from n5zarr.store.location import root_of
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.set_geometry import set_geometry
from n5zarr.tools.convert.checks import check_outside, check_places
from n5zarr.tools.convert.places import open_destination
from n5zarr.tools.convert.target import Layout
from n5zarr.tools.convert.writing import Plan as CopyPlan
from n5zarr.tools.convert.writing import verify_copies
from n5zarr.tools.jobs.incomplete import read_incomplete
from n5zarr.tools.pyramid.finding import (
    check_elements,
    is_inner,
    model_of,
    open_writable,
    positions_of,
)
from n5zarr.tools.pyramid.n5_image import N5Image, coarser_levels, remove_datasets, unlist
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.container.axes import Placed
    from n5zarr.storage.place import Location, Place
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.pyramid.model import PyramidOptions

__all__ = ["Copying", "copying", "group_of"]


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
    plan: CopyPlan

    def check(self, options: PyramidOptions) -> None:
        """Raise if it cannot be done, before anything is written."""
        require(
            not (options.overwrite and options.resume),
            "expected either overwrite (--overwrite) or resume (--resume), got both",
        )
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
            store, group = self.image.container, self.image.group
            if options.overwrite and store.node(group) is not None:
                remove_datasets(store, group, ["s0", *removed])
            self._run(options, dry_run=False)
        elif not self._has_begun_levels():
            verify_copies(self.plan.copies, options.run)

    def _has_begun_levels(self) -> bool:
        """Whether an interrupted run had copied the dataset and begun to write levels."""
        return read_incomplete(self.image.store, self.image.full("s1")) is not None

    def _run(self, options: PyramidOptions, *, dry_run: bool) -> None:
        job = {"task": "n5zarr pyramid --to"}
        self.plan.run(
            job,
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
    source, path = located.open(read_only=True)
    where = f"{source}: {path or '/'}"
    view = existing_node(source, path, "a dataset")
    if not isinstance(view, DatasetView):
        raise option_error("to (--to): expected a dataset to copy, got a group", where=where)
    check_elements(view, where)
    store, inner = open_writable(group, "")
    new = replace(root_of(group), path=inner)
    finest = join(inner, "s0")
    is_same = source.storage.is_same_place(store.storage)
    require(
        not (is_same and path in (inner, finest)),
        f"to (--to): expected another group, got {inner or 'the root'}, which is the dataset or "
        "has it as s0",
        where,
    )
    target = open_destination(replace(new, path=finest), "n5")
    tree = n5_tree(located)
    check_places(tree, target)
    plan = CopyPlan.of(tree, target, Layout.of(None, None, None), options.run, options.max_memory)
    moved = RawObject.parse(target.documents()[join(finest, ATTRIBUTES_JSON)])
    moved.remove(VERSION_KEY)
    (placed,) = placed_datasets(source, path)
    model = model_of(store, inner, {})
    removed = ["s0", *coarser_levels(store, inner)] if options.overwrite else []
    for name in removed:
        check_outside(tree, store.storage, join(inner, name))
    if removed and model.node(inner) is not None:
        unlist(model, inner, removed)
    future, document = _future(model, inner, moved.to_bytes(), placed)
    target.add_file(ATTRIBUTES_JSON, document)
    image = N5Image.of(store, future, options.convention)
    return Copying(source=str(tree.name), place=new, image=image, plan=plan)


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
    require(
        to not in ("/", "\\"),
        "to (--to): expected a group or a location, got the root of the file system; '.' is this "
        "directory",
    )
    if isinstance(to, str) and is_inner(to):
        root = root_of(place)
        return replace(root, path=normalize_path(to))
    found = place_of(to, **access, one_of_two=True)
    is_zarr = any(format_of_name(name) == "zarr" for name in found.names)
    require(
        found.is_named_n5 or not is_zarr,
        f"to (--to): expected a group of N5, got {to}; n5zarr convert SOURCE {to} --ome and then "
        f"n5zarr pyramid {to} make a pyramid of OME-Zarr",
    )
    return found


def _future(model: N5Store, group: str, document: bytes, source: Placed) -> tuple[Placed, bytes]:
    """Return ``s0`` as it will be in a group, and its document.

    Positions that the dataset has from attributes of groups above it, or from an XML, are written
    into its document.

    Parameters
    ----------
    model : N5Store
        The documents of the group and those above it.
    group : str
        The group.
    document : bytes
        The document of the dataset.
    source : Placed
        The dataset where it is.
    """
    finest = join(group, "s0")
    key = join(finest, ATTRIBUTES_JSON)
    model.storage.run(put_each([(key, document)]))
    (placed,) = placed_datasets(model, finest)
    before, after = map(described, (source, placed))
    if source.geometry is not None and positions_of(before) != positions_of(after):
        set_geometry(model, finest, convention="cosem", **positions_of(before))
        (placed,) = placed_datasets(model, finest)
    return placed, model.run(read_key(key)) or document
