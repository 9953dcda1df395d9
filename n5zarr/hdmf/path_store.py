"""Define a store that is also a path, for code of HDMF that calls ``os.path.exists(store)``.

hdmf-zarr's own tests do. :class:`~n5zarr.N5Store` itself is not ``os.PathLike``: xarray and dask
would replace it by its path, and read or write plain Zarr there.
"""

from __future__ import annotations

import os

from n5zarr.store.n5_store import N5Store

__all__ = ["N5PathStore"]


class N5PathStore(N5Store):
    """Open a local container as :class:`~n5zarr.N5Store`, and pass as a path to ``os.path``.

    Pass it to hdmf and hdmf-zarr only, not to xarray or dask.

    Parameters
    ----------
    store, **options
        As for :class:`~n5zarr.N5Store`; the container must be a local one.
    """

    def __fspath__(self) -> str:
        return os.fspath(self.root)
