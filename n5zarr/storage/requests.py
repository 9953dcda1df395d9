"""What logic asks of storage: requests, and generators that yield them.

A generator yields batches of requests and is sent their answers, so that the same logic runs with
and without await, and a batch can be answered concurrently. An error that answering raises is
thrown into the generator, as a call would raise it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from n5zarr.codecs.buffers import BufferLike

__all__ = [
    "Entry",
    "Exists",
    "FileThatNames",
    "Get",
    "List",
    "Put",
    "Remove",
    "RemoveTree",
    "Request",
    "Stamp",
    "Steps",
    "Update",
    "Warn",
    "Work",
    "list_each",
    "read_each",
    "read_key",
]


@dataclass(slots=True)  # not frozen, which costs a microsecond for each block
class Get:
    """Ask for the value of a key; the answer is bytes-like, or None when there is none.

    With ``settled`` not before other programs have finished writing it, where they can be waited
    for.
    """

    key: str
    settled: bool = False


@dataclass(slots=True)
class Stamp:
    """Ask for what differs once the value of a key has been written.

    The answer is None where there is no value, and where storage cannot tell without reading it.
    """

    key: str


@dataclass(slots=True)
class Exists:
    """Ask whether a key has a value; the answer is a bool."""

    key: str


@dataclass(slots=True)
class List:
    """Ask for what a directory holds; the answer is a list of :class:`Entry`, or None.

    None is for a directory that is not there. With ``few`` one entry is enough, and there is none
    where the store lists nothing.
    """

    path: str
    few: bool = False


@dataclass(slots=True)
class Put:
    """Ask to replace the value of a key, as a whole; the answer is None."""

    key: str
    data: BufferLike


@dataclass(slots=True)
class Update:
    """Ask to replace the value of a key by what a function makes of it; the answer is the new one.

    Between reading and writing nobody else writes, where storage can see to that: it holds the
    lock of the key meanwhile.
    """

    key: str
    change: Callable[[bytes | None], bytes]


@dataclass(slots=True)
class Remove:
    """Ask to remove a key; the answer is None.

    With ``prune`` also the directory, if only empty directories are left in it.
    """

    key: str
    prune: bool = False


@dataclass(slots=True)
class RemoveTree:
    """Ask to remove a directory and all that is in it; the answer is None."""

    path: str


@dataclass(slots=True)
class FileThatNames:
    """Ask for the nearest file in a directory, or in those above it, that names this directory.

    The search ends beside the container. The answer is the bytes of the file, or None.

    Parameters
    ----------
    path : str
        The directory, below the root.
    pattern : str
        What names of such files look like, such as ``"*.xml"``.
    named : callable
        Is given the bytes of a file and returns the directory that it names, relative to the file;
        None where it names none.
    """

    path: str
    pattern: str
    named: Callable[[bytes], str | None]


@dataclass(slots=True)
class Work:
    """Ask to call a function that takes long, off the event loop; the answer is its result."""

    function: Callable[[], object]


@dataclass(slots=True)
class Warn:
    """Ask to tell the user something, once; the answer is None."""

    message: str


class Entry(NamedTuple):
    """One entry of a directory; ``is_dir`` is None where storage cannot tell."""

    name: str
    is_dir: bool | None


type Request = (
    Get | Stamp | Exists | List | Put | Update | Remove | RemoveTree | FileThatNames | Work | Warn
)

# what an answer is depends on the request; each class says it
type Steps[T] = Generator[Sequence[Request], Sequence[Any], T]


def read_key(key: str) -> Steps[bytes | None]:
    """Read the value of a key; None where there is none."""
    return (yield from read_each([key]))[0]


def read_each(keys: Sequence[str]) -> Steps[list[bytes | None]]:
    """Read the values of some keys; None where there is none."""
    answers: Sequence[BufferLike | None] = yield [Get(key) for key in keys]
    return [None if answer is None else bytes(answer) for answer in answers]


def list_each(paths: Sequence[str]) -> Steps[list[Sequence[Entry]]]:
    """List some directories; nothing of those that are not there."""
    answers: Sequence[Sequence[Entry] | None] = yield [List(path) for path in paths]
    return [answer or [] for answer in answers]
