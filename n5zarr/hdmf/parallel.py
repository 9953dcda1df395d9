"""Let hdmf-zarr's worker processes write through a store instead of a path.

hdmf-zarr writes data of iterators in several processes (``number_of_jobs``), which it gives the
path of the container, and which find no Zarr there. Its queue has a method to override for that,
``_write_buffer_zarr``, but no hook to choose the class of the queue: ``write``, ``export`` and
``write_dataset`` create it and keep it in ``ZarrIO.__dci_queue``. That name is used here only.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

from hdmf_zarr.utils import ZarrIODataChunkIteratorQueue

from n5zarr.errors import N5Warning

if TYPE_CHECKING:
    from hdmf_zarr import ZarrIO

    from n5zarr.store.n5_store import N5Store

__all__ = ["write_through_store"]

_QUEUE = "_ZarrIO__dci_queue"  # Python's name for ZarrIO.__dci_queue
_OPTIONS = ("number_of_jobs", "max_threads_per_process", "multiprocessing_context")


def write_through_store(io: ZarrIO, store: N5Store) -> None:
    """Replace the queue of an IO object by one whose processes open a store.

    Parameters
    ----------
    io : hdmf_zarr.ZarrIO
        About to write a builder; its queue is empty, or there is none yet.
    store : N5Store
        The container.
    """
    queue = getattr(io, _QUEUE)
    options = {} if queue is None else {name: getattr(queue, name) for name in _OPTIONS}
    if options.get("number_of_jobs", 1) > 1 and not store.storage.is_shared:
        message = f"{store}: written by one process, as others could not write there"
        warnings.warn(message, N5Warning, stacklevel=4)
        options["number_of_jobs"] = 1
    setattr(io, _QUEUE, _StoreQueue(store, options))


class _StoreQueue(ZarrIODataChunkIteratorQueue):  # type: ignore[misc] # hdmf has no types
    def __init__(self, store: N5Store, options: dict[str, object]) -> None:
        super().__init__(**options)
        # pickled for each process, and called there
        self._write_buffer_zarr = partial(_write_buffer, store)


def _write_buffer(
    store: N5Store, worker_context: dict[str, object], _path: str, *what: object
) -> None:
    ZarrIODataChunkIteratorQueue._write_buffer_zarr(worker_context, store, *what)  # noqa: SLF001
