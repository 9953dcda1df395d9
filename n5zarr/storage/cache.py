"""Remember answers to requests: for a call, or as a cache of documents and blocks.

zarr's ``experimental.CacheStore`` does not remember missing keys, so it would request the missing
blocks of sparse data again and again (N5 spec, "File-system specification", item 6). It also knows
the age of a value, but not whether the array was opened since.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from n5zarr.errors import option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON

_log = logging.getLogger(__name__)

_OVERHEAD = 200  # bytes that an answer takes besides key and value, approximately
_ENTRY = 64  # bytes of a name in a listing


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """Define how much of a remote container stays in memory, and when it is read again.

    A store with a cache can write only with ``recheck=True``: writing a part of a block first reads
    the block, and an outdated block would undo what others wrote.

    Parameters
    ----------
    bytes : int, optional
        Maximum number of bytes to keep; the least recently used values are dropped first. The
        cache also remembers missing blocks.
    recheck : {"open", True, False} or float, optional
        When to read a cached value again, like tensorstore's ``recheck_cached_metadata`` and
        ``recheck_cached_data``. ``"open"``: documents whenever a node is opened, and blocks if
        they were read before the dataset was last opened. A number: values that are older than
        this number of seconds. True: always; with obstore, unchanged values are not sent again.
        False: never.

    Raises
    ------
    N5UnrepresentableError
        An option has an invalid value (``kind="option"``).
    """

    bytes: int = 2**28
    recheck: Literal["open"] | float | bool = "open"

    def __post_init__(self) -> None:
        is_number = isinstance(self.recheck, int | float) and self.recheck >= 0
        if not (self.recheck == "open" or is_number):
            raise option_error(
                f"recheck: expected 'open', True, False or seconds, got {self.recheck!r}"
            )
        if self.bytes < 0:
            raise option_error(f"bytes: expected a number of bytes, got {self.bytes}")

    @property
    def writes(self) -> bool:
        """Whether a store with this cache may write."""
        return self.recheck is True


class Kept[T](NamedTuple):
    """An answer that is remembered."""

    answer: T
    at: float = 0.0  # time of the request, in seconds of the monotonic clock
    e_tag: str | None = None


type Fetch = Callable[[str, Kept[bytes | None] | None, float], Awaitable[Kept[bytes | None]]]
"""Reads a value, of which an older one may be known, at a time."""


class Answers:
    """Answers to requests, up to a number of bytes: the last used ones, in any thread.

    Parameters
    ----------
    n_bytes : int
        Maximum number of bytes to keep.
    """

    def __init__(self, n_bytes: int) -> None:
        self._most = n_bytes
        self._forget_all()

    def _forget_all(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Kept[Any]] = OrderedDict()
        self._n_bytes = 0
        self.n_changes = 0

    def begin_anew(self) -> None:
        """Forget all in a forked process if a thread of its parent was changing the answers."""
        if self._lock.locked():
            self._forget_all()

    def find(self, what: Hashable) -> Kept[Any] | None:
        """Return the answer to a request, however old it is; None if it is not known."""
        with self._lock:
            kept = self._kept.get(what)
            if kept is not None:
                self._kept.move_to_end(what)
        return kept

    def keep(self, what: Hashable, kept: Kept[Any], n_changes: int | None = None) -> None:
        """Remember an answer unless it is too large.

        Drops the least recently used answers until all fit.

        Parameters
        ----------
        what : hashable
            The request.
        kept : Kept
            The answer.
        n_changes : int, optional
            The number of changes before the request was sent: after another one, the answer may be
            outdated, and is not kept.
        """
        with self._lock:
            self._drop(what)
            is_outdated = n_changes not in (None, self.n_changes)
            if is_outdated or _size(what, kept) > self._most:
                return
            self._kept[what] = kept
            self._n_bytes += _size(what, kept)
            while self._n_bytes > self._most:
                self._drop(next(iter(self._kept)))

    def _drop(self, what: Hashable) -> None:
        kept = self._kept.pop(what, None)
        self._n_bytes -= 0 if kept is None else _size(what, kept)

    def forget(self, what: Hashable = None) -> None:
        """Forget an answer, or all of them, as what they say is written."""
        with self._lock:
            self.n_changes += 1
            for each in list(self._kept) if what is None else [what]:
                self._drop(each)


class Cache(Answers):
    """The values of a container that were read.

    Parameters
    ----------
    options : CacheOptions
        Size of the cache, and lifetime of the values.
    """

    def __init__(self, options: CacheOptions) -> None:
        super().__init__(options.bytes)
        self.options = options
        self._opened: dict[str, float] = {}

    async def get(self, key: str, fetch: Fetch) -> bytes | None:
        """Return a value from memory, or fetch it."""
        n_changes, kept = self.n_changes, self.find(key)
        if kept is None or not self._is_fresh(key, kept):
            kept = await fetch(key, kept, time.monotonic())
            directory, _, name = key.rpartition("/")
            if name == ATTRIBUTES_JSON and kept.answer is not None:
                self._opened[directory] = kept.at
            self.keep(key, kept, n_changes)
        else:
            _log.debug("%s: answered from memory", key)
        value: bytes | None = kept.answer
        return value

    def _is_fresh(self, key: str, kept: Kept[bytes | None]) -> bool:
        """Whether a kept value is still valid, without reading it again.

        With ``recheck="open"``, a block is valid if it was read since the last opening of its
        dataset or of a group above it.
        """
        match self.options.recheck:
            case bool(always):
                return not always
            case "open":
                directory = key.rpartition("/")[0]
                if key in (ATTRIBUTES_JSON, f"{directory}/{ATTRIBUTES_JSON}"):
                    return False
                opened = self._opened.get("", 0.0)
                while directory:
                    opened = max(opened, self._opened.get(directory, 0.0))
                    directory = directory.rpartition("/")[0]
                return kept.at >= opened
            case seconds:
                return time.monotonic() - kept.at <= seconds


def _size(what: Hashable, kept: Kept[Any]) -> int:
    """Return how many bytes an answer takes, approximately."""
    n = len(kept.answer or b"")
    is_listing = not isinstance(kept.answer, bytes | memoryview | None)
    return (
        _OVERHEAD + (len(what) if isinstance(what, str) else 0) + n * (_ENTRY if is_listing else 1)
    )
