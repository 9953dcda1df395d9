"""Request each document and each listing of a container once while one call looks at it.

A call such as a conversion runs many flows, which need the same documents: those of the groups
above each dataset, for example. Flows do not know each other, so storage remembers the answers.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from zarr.storage import ObjectStore

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.storage.requests import Get, List, Put, Remove, RemoveTree, Request, Update
from n5zarr.storage.url_store import UrlStore

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["Answers", "answers", "asking_once"]

_MOST = 2**14  # answers in memory at once


class _Few:
    """Stands for listings of which the first entries suffice."""


class Answers:
    """The answers to requests for documents and listings, during one call."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, str, type], object] = {}
        self._names: dict[tuple[object, str], frozenset[str]] = {}  # in complete listings
        self._asked: dict[int, object] = {}  # so that nothing else gets the same id

    def known(self, store: object, request: Request) -> tuple[object] | None:
        """Return the answer in a tuple, or None if storage has to be asked."""
        match request:
            case Get(key) if _is_of_document(request):
                if (*_where(store, key), Get) in self._known:
                    return (self._known[*_where(store, key), Get],)
                node = key.removesuffix(ATTRIBUTES_JSON).rstrip("/")
                group, _, name = node.rpartition("/")
                names = self._names.get(_where(store, group)) if node else None
                if names is not None and name not in names:  # there is no such directory
                    return (None,)
            case List(path, few):
                for kind in (List, _Few) if few else (List,):
                    if (*_where(store, path), kind) in self._known:
                        return (self._known[*_where(store, path), kind],)
            case _:
                pass
        return None

    def keep(self, store: object, request: Request, answer: Any, *, lists_all: bool) -> None:  # noqa: ANN401 - of the request
        """Remember an answer; a write forgets everything.

        Parameters
        ----------
        store : zarr.abc.store.Store
            The store that was asked.
        request : Request
            The request.
        answer : object
            The answer.
        lists_all : bool
            Whether names that a listing lacks do not exist.
        """
        if isinstance(request, Put | Update | Remove | RemoveTree):
            self._known.clear()
            self._names.clear()
            return
        match request:
            case Get(key) if _is_of_document(request):
                self._known[*_where(store, key), Get] = answer
            case List(path, few):
                self._known[*_where(store, path), _Few if few else List] = answer
                if lists_all and not few:
                    self._names[_where(store, path)] = frozenset(e.name for e in answer or ())
            case _:
                return
        self._asked[id(store)] = store
        if len(self._known) > _MOST:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._names.pop(oldest[:2], None)


def _where(store: object, key: str) -> tuple[object, str]:
    """Return who is asked, and for what: stores of one server share what they ask for."""
    kind = type(store), getattr(store, "forbidden_is_missing", False)
    if isinstance(store, UrlStore):
        return (id(store.fs), *kind), store.full_key(key)
    inner: Any = store.store if isinstance(store, ObjectStore) else None
    if hasattr(inner, "config"):  # of a service, but not of memory
        provider = inner.credential_provider
        is_own = type(provider).__module__.startswith("n5zarr.")  # others may have no hash
        server = frozenset(inner.config.items()), provider if is_own else id(provider)
        return (*kind, *server), join(inner.prefix or "", key)
    return id(store), key


def _is_of_document(request: Get) -> bool:
    is_whole = request.part is None and not request.settled
    return is_whole and request.key.endswith(ATTRIBUTES_JSON)


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
