"""Request each document and each listing of a container once while one call looks at it.

A call such as a conversion runs many flows, which need the same documents: those of the groups
above each dataset, for example. Flows do not know each other, so storage remembers the answers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.storage.cache import Answers, Kept
from n5zarr.storage.requests import Get, List, Put, Remove, RemoveTree, Request, Update
from n5zarr.storage.services import Service

_MOST = 2**25  # bytes of answers in memory at once


class _OfCall(Answers):
    """The answers to requests for documents and listings, during one call."""

    def __init__(self, frame: FrameType) -> None:
        super().__init__(_MOST)
        self._frame, self._thread = frame, threading.get_ident()
        self._asked: dict[int, object] = {}  # so that nothing else gets the same id

    @property
    def is_over(self) -> bool:
        """Whether the code of the call has been left; an interruption may skip what follows it."""
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - documented
        while frame not in (None, self._frame):
            frame = frame.f_back
        return frame is None

    def known(self, service: Service, request: Request) -> Kept[Any] | None:
        """Return the answer, or None if storage has to be asked."""
        match request:
            case Get(key, False, None) if key.endswith(ATTRIBUTES_JSON):
                if found := self.find((Get, service.where(key))):
                    return found
                node = key.removesuffix(ATTRIBUTES_JSON).rstrip("/")
                group, _, name = node.rpartition("/")
                names = self.find(("names", service.where(group))) if node else None
                if names is not None and name not in names.answer:  # there is no such directory
                    return Kept(None)
            case List(path, few):
                where = service.where(path)
                some = self.find((List, True, where))
                suffices = few or (some is not None and some.answer == [])  # which is all
                return self.find((List, False, where)) or (some if suffices else None)
            case _:
                pass
        return None

    def learn(self, service: Service, request: Request, answer: Any) -> None:  # noqa: ANN401 - of the request
        """Remember an answer; a write forgets everything."""
        match request:
            case Put() | Update() | Remove() | RemoveTree():
                self.forget()
                return
            case Get(key, False, None) if key.endswith(ATTRIBUTES_JSON):
                self.keep((Get, service.where(key)), Kept(answer))
            case List(path, few):
                where = service.where(path)
                self.keep((List, few, where), Kept(answer))
                if service.lists_all and not few:
                    self.keep(("names", where), Kept(frozenset(e.name for e in answer or ())))
            case _:
                return
        self._asked[id(service.zarr_store)] = service.zarr_store


_answers: ContextVar[_OfCall | None] = ContextVar("answers", default=None)


def answers() -> _OfCall | None:
    """Return what storage remembers in this context; None outside of :func:`asking_once`."""
    of_call = _answers.get()
    return None if of_call is None or of_call.is_over else of_call


def _begin_anew() -> None:
    if (known := _answers.get()) is not None:
        known.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def asking_once() -> Iterator[None]:
    """Request each document and listing once within this context, except after a write.

    For calls that return values, and no open arrays: what other programs write meanwhile is not
    seen. Local files are read as always, as that costs little.
    """
    if answers() is not None:  # within a call that does the same
        yield
        return
    _answers.set(own := _OfCall(sys._getframe(2)))  # noqa: SLF001 - that of the `with`
    try:
        yield
    finally:
        # no token: a call that is thrown away ends in any context, perhaps within another call
        _answers.set(None if (known := _answers.get()) is own else known)
