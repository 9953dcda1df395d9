"""What every storage can do: the interface of local files and of zarr's stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from zarr.abc.store import Store

    from n5zarr.storage.requests import Request, Steps

__all__ = ["Storage"]


class Storage(ABC):
    """Where the keys of one container are kept; answers requests."""

    @property
    @abstractmethod
    def store(self) -> Store:
        """A zarr store of the same keys."""

    @property
    def root(self) -> Path | None:
        """The resolved directory of the container; None where it is not in local files."""
        return None

    @property
    @abstractmethod
    def read_only(self) -> bool:
        """Whether nothing can be written."""

    @property
    @abstractmethod
    def is_shared(self) -> bool:
        """Whether other processes see what this one writes."""

    @property
    @abstractmethod
    def has_stamps(self) -> bool:
        """Whether :class:`~n5zarr.storage.requests.Stamp` tells when others have written a key.

        It does in local files, where a document costs next to nothing. Elsewhere a document costs a
        request, and is asked for as seldom as can be.
        """

    @property
    @abstractmethod
    def supports_sync(self) -> bool:
        """Whether :meth:`run` works."""

    @abstractmethod
    def with_read_only(self, *, read_only: bool) -> Self:
        """Return storage of the same keys that can be written, unless ``read_only``.

        Raises
        ------
        N5UnsupportedError
            It can only be read (``kind="read-only"``).
        """

    @abstractmethod
    def is_same_place(self, other: Storage) -> bool:
        """Whether two storages hold the same container, however they read it."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, where that is needed. Makes no directory."""

    @abstractmethod
    def close(self) -> None:
        """Release what :meth:`open` has taken."""

    @abstractmethod
    def answer(self, request: Request, warn: Callable[[str], None]) -> object:
        """Answer a request; ``warn`` is given messages for the user."""

    def run[T](self, steps: Steps[T], warn: Callable[[str], None]) -> T:
        """Run a generator of requests without await.

        Parameters
        ----------
        steps : generator
            See :mod:`n5zarr.storage.requests`.
        warn : callable
            Is given messages for the user.

        Returns
        -------
        object
            What the generator returns.
        """
        try:
            requests = next(steps)
            while True:
                try:
                    answers = [self.answer(request, warn) for request in requests]
                except Exception as err:
                    requests = steps.throw(err)
                else:
                    requests = steps.send(answers)
        except StopIteration as done:
            result: T = done.value
            return result

    @abstractmethod
    async def run_async[T](self, steps: Steps[T], warn: Callable[[str], None]) -> T:
        """Run a generator of requests, each batch concurrently; see :meth:`run`."""
