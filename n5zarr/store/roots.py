"""Read the root of a container, or describe what exists instead."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from n5zarr._zarr import sync
from n5zarr.format.foreign import FIRST_BYTES, ZARR_DOCUMENTS, Foreign, file_from, zarr_node
from n5zarr.storage.not_found import NotFoundError, local_root_message
from n5zarr.storage.requests import Get, Steps
from n5zarr.store.info import read_version

if TYPE_CHECKING:
    from n5zarr.container.block_listing import Ask
    from n5zarr.container.container import Container
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.interface import Storage

__all__ = ["read_root", "root_message"]


def read_root(
    container: Container, storage: Storage, ask: Ask, *, read_only: bool
) -> dict[str, JSON]:
    """Read the root of a container; a writable container need not exist yet.

    Raises
    ------
    NotFoundError
        The container is missing and cannot be created: read-only, or the path is a file.
    N5Error
        The root is broken, has a later version, or is a node of Zarr.
    """
    sync(storage.open(read_only=read_only))
    if ask(container.node("")) is None and read_only:
        raise NotFoundError(root_message(container, storage, ask))
    library: dict[str, JSON] = {"backend": storage.backend} if storage.backend else {}
    return {"container": container.name, "kind": "container", "n5": ask(read_version()), **library}


def root_message(container: Container, storage: Storage, ask: Ask) -> str:
    """Return the message for a location that has no container."""
    if storage.given is not None:
        return local_root_message(storage.given)
    found = None
    with suppress(Exception):  # not every store accepts the empty key
        found = ask(_foreign_root())
    way = "nothing; check the location; if the server does not list, open a dataset by its path"
    return f"{container.name}: expected an N5 container, got {found or way}"


def _foreign_root() -> Steps[Foreign | None]:
    """Recognise a file or a node of Zarr at the location of a container; list nothing."""
    names = sorted(ZARR_DOCUMENTS)
    start, *documents = yield [Get("", part=(0, FIRST_BYTES)), *map(Get, names)]
    there = {
        name: bytes(value)
        for name, value in zip(names, documents, strict=True)
        if value is not None and not _is_page(bytes(value))
    }
    found = zarr_node(there, there.get("zarr.json"))
    if found is not None or not start or _is_page(bytes(start)):
        return found
    return file_from(bytes(start))


def _is_page(data: bytes) -> bool:
    """Whether the data are a web page, which some servers return for any request."""
    return data.lstrip().startswith(b"<") and b"<SpimData" not in data
