"""Let hdmf-zarr's worker processes write through a store instead of a path.

With ``number_of_jobs`` above 1, hdmf-zarr writes the data of iterators in several processes. It
gives each the path of the container, where a process finds no Zarr. What a process does can be
overridden, in ``_write_buffer_zarr`` of hdmf-zarr's queue; the class of the queue cannot be chosen:
``write``, ``export`` and ``write_dataset`` create the queue and keep it in ``ZarrIO.__dci_queue``.
No other module uses that name.
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
        message = f"{store}: written by one process: other processes would not see its keys"
        warnings.warn(message, N5Warning, stacklevel=4)
        options["number_of_jobs"] = 1
    queue = ZarrIODataChunkIteratorQueue(**options)
    # pickled for each process, and called there
    queue._write_buffer_zarr = partial(_write_buffer, store)  # noqa: SLF001 - see the module
    setattr(io, _QUEUE, queue)


def _write_buffer(
    store: N5Store, worker_context: dict[str, object], _path: str, *rest: object
) -> None:
    ZarrIODataChunkIteratorQueue._write_buffer_zarr(worker_context, store, *rest)  # noqa: SLF001
