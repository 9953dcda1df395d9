"""What logic asks of storage: the vocabulary of requests, and of generators that yield them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "Answer",
    "Entry",
    "Get",
    "List",
    "Remove",
    "RemoveTree",
    "Request",
    "Steps",
    "Update",
    "Warn",
]


@dataclass(frozen=True, slots=True)
class Get:
    """Ask for the value of a key; the answer is bytes, or None when there is none.

    With ``settled`` not before other programs have finished writing it, where they can be waited
    for.
    """

    key: str
    settled: bool = False


@dataclass(frozen=True, slots=True)
class List:
    """Ask for what a directory holds; the answer is a list of :class:`Entry`, or None.

    None is for a directory that is not there. With ``few`` one entry is enough, and there is none
    where the store lists nothing.
    """

    path: str
    few: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Ask to replace the value of a key by what a function makes of it; the answer is the new one.

    Between reading and writing nobody else writes, where the store can see to that.
    """

    key: str
    change: Callable[[bytes | None], bytes]


@dataclass(frozen=True, slots=True)
class Remove:
    """Ask to remove a key, and a directory that is left empty; the answer is None."""

    key: str


@dataclass(frozen=True, slots=True)
class RemoveTree:
    """Ask to remove a directory and all that is in it; the answer is None."""

    path: str


@dataclass(frozen=True, slots=True)
class Warn:
    """Ask to tell the user something, once; the answer is None."""

    message: str


class Entry(NamedTuple):
    """One entry of a directory; ``is_dir`` is None where the store cannot tell."""

    name: str
    is_dir: bool | None


type Request = Get | List | Update | Remove | RemoveTree | Warn
type Answer = bytes | Sequence[Entry] | None
type Steps[T] = Generator[Sequence[Request], Sequence[Answer], T]
