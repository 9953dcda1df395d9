"""Open Zarr v3 of Java's n5-zarr 2, whose documents zarr-python refuses."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, override

import zarr
from zarr.storage import StorePath, WrapperStore

from n5zarr._zarr import REFUSALS
from n5zarr.errors import N5Error, option_error
from n5zarr.zarr_view.java_document import as_specified

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest, Store

__all__ = ["JavaZarrStore", "in_own_store", "zarr_documents"]

_DOCUMENT = "zarr.json"


class JavaZarrStore(WrapperStore["Store"]):
    """A hierarchy with each ``zarr.json`` as Zarr specifies it, to open its nodes.

    Parameters
    ----------
    store : Store
        The hierarchy.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.plain = store

    @override
    def _with_store(self, store: Store) -> Self:
        return type(self)(store)

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        stored = await self.plain.get(key, prototype, byte_range)
        if stored is not None and key.rpartition("/")[2] == _DOCUMENT:
            with suppress(ValueError):  # zarr reports it
                document = json.loads(stored.to_bytes())
                changed = as_specified(document) if isinstance(document, dict) else document
                if changed != document:
                    return prototype.buffer.from_bytes(json.dumps(changed).encode())
        return stored


def in_own_store(array: zarr.AsyncArray[Any]) -> zarr.AsyncArray[Any]:
    """Return an array of a :class:`JavaZarrStore` in the store of its chunks; others as they are.

    That store may read without an event loop, which zarr asks its class.
    """
    place = array.store_path
    if not isinstance(place.store, JavaZarrStore):
        return array
    return zarr.AsyncArray(array.metadata, StorePath(place.store.plain, place.path))


@contextmanager
def zarr_documents(where: str) -> Iterator[None]:
    """Say of a document that zarr refuses where it is.

    Raises
    ------
    N5UnrepresentableError
        A document is not that of Zarr (``kind="option"``).
    """
    try:
        yield
    except N5Error:
        raise
    except REFUSALS as err:
        message = f"expected valid documents of Zarr, got {type(err).__name__}: {err}"
        raise option_error(f"{where}: {message}") from err
