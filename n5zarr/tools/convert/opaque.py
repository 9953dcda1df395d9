"""Copy datasets of ``object`` blocks from N5 to N5: opaque bytes, which are not arrays."""

from __future__ import annotations

from itertools import batched
from typing import TYPE_CHECKING

from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.storage.requests import get_each, put_each
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.incomplete import keys_below

if TYPE_CHECKING:
    from n5zarr.tools.convert.source import SourceTree
    from n5zarr.tools.convert.target import Destination

__all__ = ["copy_opaque", "opaque_paths", "verify_opaque"]

_BATCH = 64


def opaque_paths(found: SourceTree, target: Destination) -> list[str]:
    """List the nodes that can be copied without decoding."""
    if found.container is None or not isinstance(target, N5Destination):
        return []
    return [path for path, err in found.refused.items() if _is_opaque(err)]


def _is_opaque(err: Exception) -> bool:
    return isinstance(err, N5UnsupportedError) and err.kind == "data-type"


def copy_opaque(found: SourceTree, target: Destination, done: set[str]) -> None:
    """Copy these nodes, file by file; their documents are written with the others."""
    for path in opaque_paths(found, target):
        assert found.container is not None  # noqa: S101 - of such sources
        assert isinstance(target, N5Destination)  # noqa: S101 - of such destinations
        old, new = join(found.path, path), join(target.path, path)
        storage = found.container.storage
        (document,) = storage.run(get_each([join(old, ATTRIBUTES_JSON)]))
        target.keep_document(path, bytes(document or b"{}"))
        names = sorted(keys_below(storage.store, old) - {ATTRIBUTES_JSON})
        missing = (name for name in names if join(new, name) not in done)
        for batch in batched(missing, _BATCH):
            values = storage.run(get_each([join(old, name) for name in batch]))
            copied = zip(batch, values, strict=True)
            there = [(join(new, name), value) for name, value in copied if value is not None]
            target.storage.run(put_each(there))


def verify_opaque(found: SourceTree, target: Destination) -> None:
    """Compare them, file by file.

    Raises
    ------
    N5Error
        A file differs (``kind="differs"``).
    """
    for path in opaque_paths(found, target):
        assert found.container is not None  # noqa: S101 - of such sources
        old, new = join(found.path, path), join(target.path, path)
        storage = found.container.storage
        for batch in batched(sorted(keys_below(storage.store, old)), _BATCH):
            values = storage.run(get_each([join(old, name) for name in batch]))
            others = target.storage.run(get_each([join(new, name) for name in batch]))
            for name, one, other in zip(batch, values, others, strict=True):
                if one != other:
                    message = f"expected {name} of {found.name}/{path}, got other bytes"
                    raise N5Error(message, kind="differs", where=f"{target.storage}: {new}")
