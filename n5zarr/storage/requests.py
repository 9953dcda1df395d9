"""Requests to storage, and the flows that make them.

Logic does no input or output itself. It is a flow: a generator (type `Steps`) that yields batches
of requests and receives their answers. So the same logic runs with and without await, and storage
can answer a batch concurrently. An error of a request is thrown into the generator, as a call would
raise it.

The logger of this module logs each request at DEBUG.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

from n5zarr.codecs.buffers import BufferLike

_log = logging.getLogger(__name__)

MANY_BYTES = 2**30  # that text and any codecs may take, to decode and encode


@dataclass(slots=True)  # not frozen, which costs a microsecond for each block
class Get:
    """Ask for the value of a key; the answer is bytes-like, or None if the key is missing.

    With ``settled``, storage that can wait for other programs first waits until they have finished
    writing the value. With ``part``, it reads a part only: offset and number of bytes; the answer
    may be shorter.
    """

    key: str
    settled: bool = False
    part: tuple[int, int] | None = None


@dataclass(slots=True)
class Ends:
    """Ask for the first and last bytes of a key and its size; the answer is None if it is missing.

    The answer is the size, the first bytes and the last ones. If the value is not longer than
    ``first`` and ``last`` together, all of it may be in the first bytes. With ``last=0``, most
    stores answer in the time of one request.
    """

    key: str
    first: int
    last: int


@dataclass(slots=True)
class Stamp:
    """Ask for a stamp of a key: a value that changes whenever the key is written.

    The answer is None if the key is missing or storage has no stamps.
    """

    key: str


@dataclass(slots=True)
class Exists:
    """Ask whether a key has a value; the answer is a bool."""

    key: str


@dataclass(slots=True)
class List:
    """Ask for the entries of a directory; the answer is a list of :class:`Entry`, or None.

    None means that the directory is missing. With ``few``, the entries of one request suffice: the
    caller only checks whether the directory is empty. A store that cannot list then answers with no
    entries. With ``unfinished``, the entries include files of unfinished writes.
    """

    path: str
    few: bool = False
    unfinished: bool = False


type Check = Callable[[int, Callable[[int, int], bytes]], None]
"""Raises if a value must not be replaced or removed.

Takes its length in bytes, and a function that reads bytes of it, by offset and number.
"""


@dataclass(slots=True)
class KeysBelow:
    """Ask for all keys below a directory, some at a time, if storage lists them by their prefix.

    The answer is the list of the results of ``take``, or None if storage lists one directory at a
    time, as local files and web servers do.

    Parameters
    ----------
    path : str
        The directory.
    take : callable
        Takes some keys, relative to the directory, and the sizes of their values; None for the
        sizes if the listing lacks them.
    """

    path: str
    take: Callable[[Sequence[str], Sequence[int] | None], object]


@dataclass(slots=True)
class Put:
    """Ask to replace the whole value of a key; the answer is None.

    Local files call ``check`` with the file to be replaced, under its lock. Other storage would
    need more requests for this, and does not call it.
    """

    key: str
    data: BufferLike
    check: Check | None = None


@dataclass(slots=True)
class Update:
    """Ask to replace the value of a key by a function of it; the answer is the new value.

    The function gets None if the key is missing, and may return None to remove the key. It is
    called again if another writer was first, and off the event loop if it decodes and encodes many
    bytes (``n_bytes``). Storage with locks or conditional writes lets no other program write
    between reading and writing.
    """

    key: str
    change: Callable[[bytes | None], bytes | None]
    n_bytes: int = 0


@dataclass(slots=True)
class Remove:
    """Ask to remove a key; the answer is None.

    With ``prune``, storage also removes the key's directory if only empty directories are left in
    it. ``check`` is that of :class:`Put`.
    """

    key: str
    prune: bool = False
    check: Check | None = None


@dataclass(slots=True)
class RemoveTree:
    """Ask to remove a directory and everything in it; the answer is None."""

    path: str


@dataclass(slots=True)
class FileThatNames:
    """Ask for the nearest file that names a directory, such as the XML file of BigDataViewer.

    Storage searches the directory and its parents, up to the directory that holds the container.
    The answer is the bytes of the file, or None.

    Parameters
    ----------
    path : str
        The directory, below the root.
    pattern : str
        Pattern of the file names to look at, such as ``"*.xml"``.
    named : callable
        Takes the bytes of a file and returns the directory that it names, relative to the file, or
        None if it names none.
    """

    path: str
    pattern: str
    named: Callable[[bytes], str | None]


@dataclass(slots=True)
class Work:
    """Ask to call a slow function off the event loop; the answer is its result."""

    function: Callable[[], object]


@dataclass(slots=True)
class Warn:
    """Ask to warn the user, once; the answer is None."""

    message: str


class Entry(NamedTuple):
    """One entry of a directory.

    Parameters
    ----------
    name : str
        Its name.
    is_dir : bool or None
        Whether it is a directory; None if storage cannot tell.
    is_nested_link : bool, optional
        Whether it is a link in a directory behind a link. A group there is omitted, so that a walk
        does not follow links to each other without end.
    is_dead_link : bool, optional
        Whether it is a link to a missing file or directory.
    """

    name: str
    is_dir: bool | None
    is_nested_link: bool = False
    is_dead_link: bool = False


type Request = (
    Get
    | Ends
    | Stamp
    | Exists
    | List
    | KeysBelow
    | Put
    | Update
    | Remove
    | RemoveTree
    | FileThatNames
    | Work
    | Warn
)

# Any: the type of an answer depends on the request, see each class
type Steps[T] = Generator[Sequence[Request], Sequence[Any], T]


def request_each(requests: Iterable[Request]) -> Steps[list[Any]]:
    """Make several requests at once; return their answers."""
    return list((yield list(requests)))


@dataclass(slots=True)
class Paused:
    """A flow that was driven up to some requests, which nobody has answered yet."""

    requests: Sequence[Request]


@overload
def drive[T](
    steps: Steps[T],
    answer: Callable[[Request], object],
    *,
    requests: Sequence[Request] | None = None,
) -> T: ...
@overload
def drive[T](
    steps: Steps[T],
    answer: Callable[[Request], object],
    *,
    pauses_at: Callable[[Sequence[Request]], bool],
) -> T | Paused: ...
def drive[T](
    steps: Steps[T],
    answer: Callable[[Request], object],
    *,
    requests: Sequence[Request] | None = None,
    pauses_at: Callable[[Sequence[Request]], bool] | None = None,
) -> T | Paused:
    """Run a flow to its end, or up to requests that another thread should answer.

    Parameters
    ----------
    steps : generator
        The flow.
    answer : callable
        Answers a request. An error that it raises is raised in the flow.
    requests : sequence of requests, optional
        Those at which the flow was paused.
    pauses_at : callable, optional
        Whether to pause at some requests.

    Returns
    -------
    object or Paused
        The return value of the flow.
    """
    try:
        if requests is None:
            requests = next(steps)
        while pauses_at is None or not pauses_at(requests):
            try:
                answers = [answer(request) for request in requests]
            except Exception as err:
                requests = steps.throw(err)
            else:
                requests = steps.send(answers)
        return Paused(requests)
    except StopIteration as done:
        result: T = done.value
        return result


async def drive_async[T](
    steps: Steps[T],
    answer: Callable[[Sequence[Request]], Awaitable[Sequence[object]]],
    requests: Sequence[Request] | None = None,
) -> T:
    """Run a flow to its end; ``answer`` answers all requests of a batch, see :func:`drive`."""
    try:
        if requests is None:
            requests = next(steps)
        while True:
            try:
                answers = await answer(requests)
            except Exception as err:
                requests = steps.throw(err)
            else:
                requests = steps.send(answers)
    except StopIteration as done:
        result: T = done.value
        return result


def read_key(key: str) -> Steps[bytes | None]:
    """Read the value of a key; None if the key is missing."""
    return (yield from read_each([key]))[0]


def read_each(keys: Sequence[str]) -> Steps[list[bytes | None]]:
    """Read the values of several keys; None for each missing one."""
    return [None if data is None else bytes(data) for data in (yield [Get(key) for key in keys])]


def get_each(keys: Sequence[str]) -> Steps[list[BufferLike | None]]:
    """Read the values of several keys without a copy."""
    return list((yield [Get(key) for key in keys]))


def put_each(values: Iterable[tuple[str, BufferLike]]) -> Steps[None]:
    """Replace the values of several keys."""
    yield [Put(key, value) for key, value in values]


def list_each(paths: Sequence[str]) -> Steps[list[Sequence[Entry]]]:
    """List several directories; a missing one has no entries."""
    return [answer or [] for answer in (yield [List(path) for path in paths])]


def each_once[T](steps: Steps[T]) -> Steps[T]:
    """Run a flow that requests some keys repeatedly; read each key once."""
    known: dict[str, object] = {}
    try:
        requests = next(steps)
        while True:
            new = [request for request in requests if _plain_key(request) not in known]
            try:
                found = dict(zip(map(id, new), (yield new) if new else (), strict=True))
            except Exception as err:
                requests = steps.throw(err)
                continue
            known |= {key: found[id(r)] for r in new if (key := _plain_key(r)) is not None}
            requests = steps.send(
                [found[id(r)] if id(r) in found else known[_plain_key(r) or ""] for r in requests]
            )
    except StopIteration as done:
        result: T = done.value
        return result


def _plain_key(request: Request) -> str | None:
    """Return the key of a request for a whole value, as it is; None of other requests."""
    match request:
        case Get(key, False, None):
            return key
        case _:
            return None


def logs_requests() -> bool:
    """Whether requests are logged; check it once per batch, as the check costs time."""
    return _log.isEnabledFor(logging.DEBUG)


def log_request(place: object, request: Request, answer: object) -> None:
    """Log a request.

    Parameters
    ----------
    place : Storage
        The storage of the request; its text names the container without secrets.
    request : Request
        The request.
    answer : object
        The answer, or the exception of the request.
    """
    if isinstance(request, Work | Warn):  # not requests to the container
        return
    of_directories = List | KeysBelow | RemoveTree | FileThatNames
    key = request.path if isinstance(request, of_directories) else request.key
    part = request.part if isinstance(request, Get) else None
    where = "" if part is None else f", bytes {part[0]} to {sum(part)}"
    name = type(request).__name__
    _log.debug("%s %s/%s%s: %s", name, place, key, where, _outcome(request, answer))


def _outcome(request: Request, answer: Any) -> str:  # noqa: ANN401 - depends on the request
    if isinstance(answer, Exception):
        return type(answer).__name__  # the text may contain the URL, with secrets
    if isinstance(request, Remove | RemoveTree):
        return "done"
    if isinstance(request, List) and answer is not None:
        return f"{len(answer)} entries"
    data = request.data if isinstance(request, Put) else answer
    if isinstance(data, bytes | bytearray | memoryview):
        return f"{memoryview(data).nbytes} bytes"
    return "there" if data else "nothing"
