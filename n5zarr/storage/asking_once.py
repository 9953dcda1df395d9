"""Request each document and each listing of a container once while one call looks at it.

A call such as a conversion runs many flows, which need the same documents: those of the groups
above each dataset, for example. Flows do not know each other, so storage remembers the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.storage.requests import Get, List, Put, Remove, RemoveTree, Update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from n5zarr.storage.requests import Request

__all__ = ["Answers", "answers", "asking_once"]

_MOST = 2**14  # answers in memory at once


class _Few:
    """Stands for listings of which the first entries suffice."""


class Answers:
    """The answers to requests for documents and listings, during one call."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, type], object] = {}
        self._stores: dict[int, object] = {}  # so that no other store gets the same id

    def __contains__(self, request: Request) -> bool:
        """Whether answers to such requests are remembered."""
        match request:
            case Get(key, settled, part):
                return not settled and part is None and key.endswith(ATTRIBUTES_JSON)
            case List():
                return not request.unfinished
        return False

    def known(self, store: object, request: Request) -> tuple[object] | None:
        """Return the answer in a tuple, or None if storage has to be asked."""
        match request:
            case Get(key) if request in self:
                if (id(store), key, Get) in self._known:
                    return (self._known[id(store), key, Get],)
                node = key.removesuffix(ATTRIBUTES_JSON).rstrip("/")
                group, _, name = node.rpartition("/")
                listed = self._known.get((id(store), group, List)) if node else None
                if isinstance(listed, Sequence) and all(entry.name != name for entry in listed):
                    return (None,)  # a document in a directory that does not exist
            case List(path, few) if request in self:
                for kind in (List, _Few) if few else (List,):
                    if (id(store), path, kind) in self._known:
                        return (self._known[id(store), path, kind],)
        return None

    def keep(self, store: object, request: Request, answer: object) -> None:
        """Remember an answer; a write forgets everything."""
        if isinstance(request, Put | Update | Remove | RemoveTree):
            self._known.clear()
        elif request in self and isinstance(request, Get | List):
            self._stores[id(store)] = store
            if isinstance(request, Get):
                self._known[id(store), request.key, Get] = answer
            else:
                kind = _Few if request.few else List
                self._known[id(store), request.path, kind] = answer
            if len(self._known) > _MOST:
                del self._known[next(iter(self._known))]


answers: ContextVar[Answers | None] = ContextVar("answers", default=None)
"""The answers that storage remembers in this context; None outside of :func:`asking_once`."""


@contextmanager
def asking_once() -> Iterator[None]:
    """Request each document and listing once within this context, except after a write.

    For calls that return values, and no open arrays: what other programs write meanwhile is not
    seen. Local files are read as always, as that costs little.
    """
    if answers.get() is not None:  # within a call that does the same
        yield
        return
    token = answers.set(Answers())
    try:
        yield
    finally:
        answers.reset(token)
