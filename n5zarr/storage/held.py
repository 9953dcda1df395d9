"""Hold the zarr store of a container; in a forked process, one that works there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from zarr.abc.store import Store
from zarr.storage import ObjectStore, ZipStore

from n5zarr.errors import N5Error
from n5zarr.storage.forks import FORKS, fork_error
from n5zarr.storage.services import service_of
from n5zarr.storage.store_locations import innermost, name_of_data

type Reopen = Callable[..., tuple[Store, str]]
"""Opens the store of a URL again, also with ``backend=...``, and names the library."""

AS_ASKED = "as asked for"  # why a library is chosen
_WHY = "a parent had used obstore; open the URL without backend='obstore', so that fsspec reads it"


class HeldStore:
    """The store of a container in this process.

    Parameters
    ----------
    store : zarr.abc.store.Store
        Any store. One of fsspec begins anew by itself.
    backend : str
        The library that reads a URL, and why it was chosen.
    reopen : callable or None
        See :data:`Reopen`; None if the store is not one of a URL.
    """

    def __init__(self, store: Store, backend: str, reopen: Reopen | None) -> None:
        self.store, self.backend, self.reopen = store, backend, reopen
        # a store of obstore is of no use in any process that has lost obstore, also a new one
        self._n_forks = -1 if self._is_lost else FORKS.number

    def lock_name(self, key: str) -> str:
        """Return the name of the lock of a value, the same in all stores of the same data.

        Where updates are conditional, as in object stores, each store has its own names.
        """
        return f"{self._place}/{key}"

    @cached_property
    def _place(self) -> str:
        name = name_of_data(self.store)
        return f"{id(self)} {name}" if service_of(self.store).is_conditional else name

    @property
    def is_of_parent(self) -> bool:
        """Whether the store may not work here before :meth:`begin_anew`."""
        return self._n_forks != FORKS.number

    @property
    def _is_lost(self) -> bool:
        return FORKS.has_lost_obstore and _is_of_obstore(self.store)

    def begin_anew(self, name: str, begin: Callable[[], None]) -> None:
        """Replace clients and files of a parent.

        Parameters
        ----------
        name : str
            Of the container, for the error.
        begin : callable
            Drops what else belongs to a parent; called once in each process.

        Raises
        ------
        N5UnsupportedError
            No store works in this process (``kind="fork"``).
        """
        with FORKS.lock:
            if self.is_of_parent:
                begin()
                self._replace(name)
                self._n_forks = FORKS.number

    def _replace(self, name: str) -> None:
        store = self.store
        if self._is_lost:
            self.store = self._reopened(name)
            FORKS.abandon(store)
        elif isinstance(store, ZipStore) and store.read_only and store.path is not None:
            self.store = ZipStore(store.path, mode="r")  # processes share the position in a file
            FORKS.abandon(store)

    def through_fsspec(self) -> Store | None:
        """Open the place through fsspec; None if the user has chosen obstore, or it cannot be."""
        if self.reopen is None or self.backend.endswith(AS_ASKED):  # with options of obstore
            return None
        try:
            return self.reopen(backend="fsspec")[0].with_read_only(read_only=False)
        except N5Error:
            return None

    def _reopened(self, name: str) -> Store:
        if self.reopen is None:
            raise fork_error(name, _WHY)
        try:
            store, backend = self.reopen()
        except N5Error as err:
            raise fork_error(name, f"{_WHY} ({err})") from err
        if _is_of_obstore(store):
            raise fork_error(name, _WHY)
        self.backend = backend
        if store.read_only and not self.store.read_only:
            store = store.with_read_only(read_only=False)
        return store


def _is_of_obstore(store: Store) -> bool:
    return isinstance(innermost(store), ObjectStore)
