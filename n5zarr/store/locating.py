"""Look at a location once: what is there, and how it is shown as N5.

Everything that reads takes what this module finds. Each format that can be shown as N5 has a
function that :mod:`n5zarr.rooms` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TypedDict, Unpack

from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import join, normalize_path
from n5zarr.rooms import ADDED, Door
from n5zarr.storage.interface import Durability
from n5zarr.storage.not_found import NotFoundError
from n5zarr.storage.place import Place
from n5zarr.store.location import check_writable_store, root_of
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.store.shown_store import ShownStore


class Document(Protocol):
    """A document that names a container and says what is in it; its text is its path or URL."""

    def describe(self) -> dict[str, JSON]:
        """Return its content as plain data."""

    def describe_group(self, name: str) -> dict[str, JSON]:
        """Return what it says of a group of this name; empty if nothing."""


class OpenOptions(TypedDict, total=False):
    """The options of :func:`open_container`."""

    axis_order: AxisOrder
    durability: Durability | None
    writes: bool | None


@dataclass(frozen=True)
class Located:
    """A container of N5, or another format shown as N5, and the node that a location names.

    Parameters
    ----------
    kind : str
        What it is: N5, or a name in `rooms.ADDED`.
    place : Place
        The container, or the group in it that the location names; of another format, the store
        that shows it as N5.
    path : str
        The node below it.
    document : Document, optional
        The document that names the container, if the location is one.
    """

    kind: str
    place: Place
    path: str = ""
    document: Document | None = None

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add the name of the document to the error of a missing container, or of a node in it."""
        try:
            yield
        except FileNotFoundError as err:
            if self.document is None:
                raise
            raise NotFoundError(f"{self.document}: its container: {err}") from err

    def open(
        self,
        *,
        axis_order: AxisOrder = "C",
        durability: Durability | None = None,
        writes: bool | None = None,
    ) -> tuple[N5Store, str]:
        """Open the container; see :func:`open_container`."""
        place = root_of(self.place)
        path = join(normalize_path(place.path), normalize_path(self.path))
        if isinstance(place.location, N5Store):
            given = place.location
            if durability not in (None, given.durability):
                message = f"durability: expected that of the store, {given.durability!r}, or none"
                raise option_error(f"{message}, got {durability!r}")
            store = given.showing(given.zarr_format or 3)
        else:
            store = N5Store(
                replace(place, path=""),
                codecs="n5",
                zarr_format=3,
                axis_order=axis_order,
                durability=durability or "atomic",
                read_only=writes is False,
            )
        if writes:
            check_writable_store(store, f"{store}: {path or '/'}")
            if self.document is not None:  # nothing is created that only a document names
                existing_node(store, place.path)
        return store, path


type Locate = Callable[[Place, str], Located | None]
"""Looks at a place and a path below it; None for a location that is left to the next one."""


def locate(place: Place, path: str = "", formats: Iterable[str] = ADDED["location"]) -> Located:
    """Look at a location: which format is there, and where its container is.

    Parameters
    ----------
    place : Place
        A container, or a location in one: of N5 or OME-Zarr, or the XML of a project.
    path : str, optional
        Node below it.
    formats : iterable of str, optional
        The other formats to look for; all by default.

    Returns
    -------
    Located
        The location; of N5 if nothing tells another format.
    """
    is_xml = place.is_named("bdv")  # which only names tell; without need, no room is imported
    if isinstance(place.location, N5Store | ShownStore) or (place.is_named("n5") and not is_xml):
        return Located("n5", place, path)
    for name in formats:
        if name == "bdv" and not is_xml:
            continue
        door: Door[Locate] = Door("location", name)
        look = door.found()
        if look is not None and (found := look(place, path)) is not None:
            return found
    return Located("n5", place, path)


def open_container(
    place: Place, path: str = "", **options: Unpack[OpenOptions]
) -> tuple[N5Store, str]:
    """Open the container of a location with n5zarr's own codec.

    Parameters
    ----------
    place, path : Place, str
        As for :func:`locate`.
    axis_order : {"C", "F"}, optional
        The order of the axes; ``"C"`` reverses N5's. An :class:`N5Store` keeps its own.
    durability : {"atomic", "durable", "overwrite"}, optional
        The way to write local files; ``"atomic"`` by default. An :class:`N5Store` keeps its own.
    writes : bool, optional
        Whether the caller writes, so that the store must be writable, or only reads, so that it is
        opened read-only; by default neither. A given :class:`N5Store` is not changed.

    Returns
    -------
    N5Store, str
        The container, and the path of the node in it. A given :class:`N5Store` is returned
        unchanged or, if its ``zarr_format`` is None, as Zarr v3, so that all nodes are visible.
        Other formats are shown as N5, read only.

    Raises
    ------
    N5UnrepresentableError
        The given :class:`N5Store` has another durability (``kind="option"``).
    N5UnsupportedError
        The caller writes, but the store is read-only (``kind="read-only"``).
    """
    return locate(place, path).open(**options)
