"""The interface of storage, which local files and zarr's stores implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from n5zarr.codecs.buffers import BufferLike
from n5zarr.storage.requests import Request, Steps, drive, log_request, logs_requests

if TYPE_CHECKING:
    from zarr.abc.store import Store


type Durability = Literal["atomic", "durable", "overwrite"]
"""The ways to write local files, see :mod:`n5zarr.storage.writing`."""


def ignore_warning(_message: str) -> None:
    """Drop a message for the user."""


class Storage(ABC):
    """The keys of one container; answers requests for them.

    ``str(storage)`` names the container in messages. Storage must be picklable for other processes,
    so its state excludes locks. :class:`~n5zarr.N5Store` refuses to write if ``read_only`` is
    true; :meth:`answer` need not check. Requests of one batch may be answered concurrently.

    Attributes
    ----------
    root : Path or None
        The resolved directory of the container; None unless it is in local files.
    durability : {"atomic", "durable", "overwrite"}
        The way to write files; other storage than local files replaces whole values.
    has_cache : bool
        Whether whole values are cached, so that reading parts saves nothing.
    has_stamps : bool
        Whether :class:`~n5zarr.storage.requests.Stamp` reveals that others have written a key.
        Local files have stamps, which are cheap to compare. Elsewhere, a document costs a request,
        so it is read as seldom as possible.
    """

    root: Path | None = None
    durability: Durability = "atomic"
    has_cache = False
    has_stamps = False

    @property
    @abstractmethod
    def store(self) -> Store:
        """A zarr store with the same keys, also used to open the container again."""

    @property
    def backend(self) -> str:
        """The library that reads a URL, and why it was chosen; empty for other storage."""
        return ""

    @property
    def get_waiting(self) -> Callable[[str], BufferLike | None] | None:
        """A function that reads a value and waits for it on any thread; None if there is none.

        It returns None for a missing key, and raises the errors of :class:`Get`. A value costs half
        of the processor time that it costs with await.
        """
        return None

    @property
    def given(self) -> Path | None:
        """The directory of the container by the user's name for it, which may be a link."""
        return None

    @property
    @abstractmethod
    def read_only(self) -> bool:
        """Whether writing is refused."""

    @property
    @abstractmethod
    def is_shared(self) -> bool:
        """Whether other processes see the keys that this one writes."""

    @property
    @abstractmethod
    def supports_sync(self) -> bool:
        """Whether :meth:`answer` works, so that :meth:`run` needs no event loop."""

    @abstractmethod
    def with_read_only(self, *, read_only: bool) -> Self:
        """Return storage of the same keys that refuses writing, or allows it.

        Raises
        ------
        N5UnsupportedError
            ``read_only`` is false, but the storage cannot write (``kind="read-only"``).
        """

    @abstractmethod
    def is_same_place(self, other: Storage) -> bool:
        """Whether two storages hold the same container, even if they read it in different ways."""

    @abstractmethod
    async def open(self, *, read_only: bool) -> None:
        """Connect if the storage needs it; create no directory.

        Raises
        ------
        FileNotFoundError
            The place cannot have a container or, with ``read_only``, has none; raised only if the
            check costs no request.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the resources that :meth:`open` acquired."""

    @abstractmethod
    def answer(self, request: Request, warn: Callable[[str], None]) -> object:
        """Answer one request, and call ``warn`` with messages for the user."""

    def answer_and_log(self, request: Request, warn: Callable[[str], None]) -> object:
        """Answer one request, and log it."""
        try:
            answer = self.answer(request, warn)
        except Exception as err:
            log_request(self, request, err)
            raise
        log_request(self, request, answer)
        return answer

    def answer_with(self, warn: Callable[[str], None]) -> Callable[[Request], object]:
        """Return the function that answers a request, and logs it if requests are logged."""
        return partial(self.answer_and_log if logs_requests() else self.answer, warn=warn)

    def run[T](
        self,
        steps: Steps[T],
        warn: Callable[[str], None] = ignore_warning,
        requests: Sequence[Request] | None = None,
    ) -> T:
        """Run a flow, and wait for its result.

        Parameters
        ----------
        steps : generator
            See :mod:`n5zarr.storage.requests`.
        warn : callable, optional
            Called with messages for the user.
        requests : sequence of requests, optional
            Those at which the flow was paused, if it has been started.

        Returns
        -------
        object
            The return value of the generator.
        """
        return drive(steps, self.answer_with(warn), requests=requests)

    @abstractmethod
    async def run_async[T](
        self, steps: Steps[T], warn: Callable[[str], None] = ignore_warning
    ) -> T:
        """Run a flow with await, the requests of a batch concurrently; see :meth:`run`."""
