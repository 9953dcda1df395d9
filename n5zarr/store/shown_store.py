"""Tell stores that only show other data as N5 from those that hold blocks of N5."""

from __future__ import annotations

from typing import ClassVar

from zarr.abc.store import Store

from n5zarr.errors import N5UnsupportedError


class ShownStore(Store):
    """Base class of stores that show data of other formats as N5; read only.

    Attributes
    ----------
    refusal : str
        Message for a write: what is expected, and the way out.
    """

    refusal: ClassVar[str]


def check_stored(store: Store, where: str, way: str) -> None:
    """Raise if a store only shows other data as N5, so that no blocks of N5 are stored.

    Raises
    ------
    N5UnsupportedError
        The blocks are made when they are read (``kind="option"``).
    """
    if isinstance(store, ShownStore):
        message = f"expected stored blocks of N5, got data of another format; {way}"
        raise N5UnsupportedError(message, kind="option", where=where)
