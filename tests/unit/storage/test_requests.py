"""Flows of requests run the same on local files, in memory, with and without await."""

from __future__ import annotations

import asyncio
import errno
import os
import pickle
import threading
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest
from obstore.store import MemoryStore as ObjectsInMemory
from zarr.buffer import cpu
from zarr.storage import LocalStore, MemoryStore, ObjectStore, ZipStore

from n5zarr._zarr import sync
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.storage import locks
from n5zarr.storage.cache import CacheOptions
from n5zarr.storage.interface import Storage
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import (
    Ends,
    Entry,
    Exists,
    Get,
    List,
    Put,
    Remove,
    RemoveTree,
    Request,
    Stamp,
    Steps,
    Update,
    Warn,
    Work,
    each_once,
    list_each,
    read_each,
    read_key,
)
from n5zarr.storage.zarr_store import ZarrStorage
from tests.refusals import refused
from tests.waiting import let_others_run


class Ask(Protocol):
    """A way of running a flow."""

    def __call__[T](self, steps: Steps[T]) -> T: ...


@pytest.fixture(params=["local", "memory", "objects", "url", "cached"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    match request.param:
        case "local":
            return LocalFiles(tmp_path / "c.n5")
        case "objects":
            return ZarrStorage(ObjectStore(ObjectsInMemory()))
        case "url":
            return open_storage(place_of(f"memory://{uuid4().hex}/c.n5"))
        case "cached":
            return ZarrStorage(MemoryStore(), cache=CacheOptions(recheck=True))
        case _:
            return ZarrStorage(MemoryStore())


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, storage: Storage, said: list[str]) -> Ask:
    """Return a function that runs a flow in one of both ways."""

    def run[T](steps: Steps[T]) -> T:
        if request.param == "sync":
            return storage.run(steps, said.append)
        return asyncio.run(storage.run_async(steps, said.append))

    return run


@pytest.fixture
def said() -> list[str]:
    return []


def each(*requests: Request) -> Steps[list[object]]:
    answers = yield requests
    return list(answers)


def one_by_one(*requests: Request) -> Steps[list[object]]:
    answers: list[object] = []
    for request in requests:
        (answer,) = yield [request]
        answers.append(answer)
    return answers


def test_a_value_that_is_put_is_there_until_it_is_removed(ask: Ask) -> None:
    answers = ask(
        one_by_one(
            Get("a/k"), Exists("a/k"), Put("a/k", b"12"), Get("a/k"), Exists("a/k"),
            Remove("a/k"), Get("a/k"), Remove("a/k"),
        )
    )  # fmt: skip
    values = [bytes(a) if isinstance(a, bytes | memoryview) else None for a in answers]
    assert values == [None, None, None, b"12", None, None, None, None]
    assert [a for a in answers if isinstance(a, bool)] == [False, True]


def test_answers_come_in_the_order_of_the_batch(ask: Ask) -> None:
    ask(one_by_one(*(Put(f"k{i}", bytes([i])) for i in range(7))))
    values = ask(read_each([f"k{i}" for i in (6, 2, 9, 0)]))
    assert values == [b"\x06", b"\x02", None, b"\x00"]
    assert ask(read_key("k5")) == b"\x05"
    assert ask(read_each([])) == []


def test_a_listing_tells_a_missing_directory_from_an_entry(ask: Ask) -> None:
    ask(one_by_one(Put("g/a/k", b"1"), Put("g/b", b"2")))
    (entries,) = ask(list_each(["g"]))
    assert all(isinstance(entry, Entry) for entry in entries)
    assert sorted(entry.name for entry in entries) == ["a", "b"]
    assert ask(each(List("h"))) == [None]
    assert ask(list_each(["h", "g/a"]))[0] == []


def test_an_update_is_given_the_old_value_and_answers_the_new(ask: Ask) -> None:
    def append(old: bytes | None) -> bytes:
        return (old or b"") + b"+"

    remove = Update("g/k", lambda _: None)
    updates = one_by_one(remove, Update("g/k", append), Update("g/k", append))
    assert ask(updates) == [None, b"+", b"++"]
    assert ask(read_key("g/k")) == b"++"
    assert ask(each(remove)) == [None]
    assert ask(read_key("g/k")) is None


def test_an_update_that_raises_writes_nothing(ask: Ask) -> None:
    def refuse(_: bytes | None) -> bytes:
        message = "refused"
        raise N5UnrepresentableError(message, kind="option")

    ask(one_by_one(Put("k", b"old")))
    with pytest.raises(N5UnrepresentableError, match="refused"):
        ask(one_by_one(Update("k", refuse)))
    assert ask(read_key("k")) == b"old"


def test_a_tree_is_removed_with_all_below_it_and_nothing_beside(ask: Ask) -> None:
    ask(one_by_one(Put("g/a/k", b"1"), Put("g/b", b"2"), Put("gg", b"3"), RemoveTree("g")))
    assert ask(read_each(["g/a/k", "g/b", "gg"])) == [None, None, b"3"]


def test_warnings_and_work_are_answered(ask: Ask, said: list[str]) -> None:
    assert ask(each(Warn("careful"), Work(lambda: 5))) == [None, 5]
    assert said == ["careful"]


def test_a_flow_may_catch_what_answering_raises(ask: Ask) -> None:
    def fail() -> object:
        message = "no"
        raise PermissionError(message)

    def flow() -> Steps[str]:
        try:
            yield [Work(fail)]
        except PermissionError as err:
            (value,) = yield [Get("k")]
            return f"{err}, then {value}"
        return "not reached"

    assert ask(flow()) == "no, then None"


def test_an_error_that_a_flow_does_not_catch_passes_through(ask: Ask) -> None:
    def fail() -> object:
        raise PermissionError

    closed: list[bool] = []

    def flow() -> Steps[None]:
        try:
            yield [Work(fail)]
        finally:
            closed.append(True)

    with pytest.raises(PermissionError):
        ask(flow())
    assert closed == [True]


@pytest.mark.parametrize("storage", ["local", "memory"], indirect=True)  # without a loop
def test_an_interruption_is_not_handed_to_the_flow(storage: Storage) -> None:
    def interrupted() -> object:
        raise KeyboardInterrupt

    went_on: list[bool] = []

    def flow() -> Steps[None]:
        try:
            yield [Work(interrupted)]
        except KeyboardInterrupt:
            went_on.append(True)
            yield [Put("k", b"1")]

    with pytest.raises(KeyboardInterrupt):
        storage.run(flow(), print)
    assert went_on == []


def test_work_runs_off_the_event_loop(storage: Storage) -> None:
    async def threads() -> tuple[object, object]:
        steps = each(Work(threading.get_ident))
        (found,) = await storage.run_async(steps, print)
        return found, threading.get_ident()

    worker, loop = asyncio.run(threads())
    assert worker != loop


def test_stamps_tell_of_changes_in_local_files_only(tmp_path: Path) -> None:
    local = LocalFiles(tmp_path)
    before, _, after, nothing = local.run(
        one_by_one(Stamp("k"), Put("k", b"1"), Stamp("k"), Stamp("other")), print
    )
    assert local.has_stamps
    assert (before, nothing) == (None, None)
    assert after is not None
    memory = ZarrStorage(MemoryStore())
    assert memory.run(one_by_one(Put("k", b"1"), Stamp("k")), print) == [None, None]
    assert not memory.has_stamps


def test_a_removed_document_leaves_no_empty_directory(tmp_path: Path) -> None:
    local = LocalFiles(tmp_path / "c")
    local.run(one_by_one(Put("a/b/k", b"1"), Remove("a/b/k", prune=True)), print)
    assert not (tmp_path / "c" / "a" / "b").exists()
    local.run(one_by_one(Put("a/b/k", b"1"), Remove("a/b/k")), print)
    assert (tmp_path / "c" / "a" / "b").is_dir()
    (tmp_path / "c" / "a" / "b").rmdir()
    (tmp_path / "c" / "a").rmdir()
    local.run(one_by_one(Put("k", b"1"), Remove("k", prune=True)), print)
    assert (tmp_path / "c").is_dir()  # the container itself


class OpenedSlowly(MemoryStore):
    """A store that takes a while to open, as one that connects to a server."""

    async def _open(self) -> None:
        await let_others_run()
        await super()._open()


def test_requests_of_the_same_moment_open_a_store_once() -> None:
    wanted = read_each([f"{i}" for i in range(7)])
    assert asyncio.run(ZarrStorage(OpenedSlowly()).run_async(wanted, print)) == [None] * 7


def test_opening_makes_no_directory(tmp_path: Path) -> None:
    local = LocalFiles(tmp_path / "new.n5")
    asyncio.run(local.open(read_only=False))
    assert local.run(each(Get("k"), List(""), Exists("k")), print) == [None, None, False]
    with pytest.raises(FileNotFoundError, match=r"new\.n5 does not exist"):
        asyncio.run(local.open(read_only=True))


def test_a_path_that_the_system_refuses_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, stat = LocalFiles(tmp_path / "closed" / "a.n5"), Path.stat

    def refuse(path: Path, **options: bool) -> object:
        if "closed" in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    for read_only in (True, False):
        with pytest.raises(PermissionError, match=r"Permission denied: .*a\.n5"):
            asyncio.run(local.open(read_only=read_only))
    assert not (tmp_path / "new.n5").exists()


def test_storage_can_be_pickled(tmp_path: Path) -> None:
    local = LocalFiles(tmp_path)
    local.run(each(Put("k", b"1")), print)
    copied = pickle.loads(pickle.dumps(local))
    assert copied.run(read_key("k"), print) == b"1"
    again = pickle.loads(pickle.dumps(ZarrStorage(LocalStore(tmp_path))))
    assert again.run(read_key("k"), print) == b"1"


def test_a_store_without_synchronous_methods_runs_on_a_loop_and_says_so(tmp_path: Path) -> None:
    storage = ZarrStorage(ZipStore(tmp_path / "c.zip", mode="w"))
    assert not storage.supports_sync
    assert storage.run(read_key("k"), print) is None
    with pytest.raises(N5UnsupportedError, match="ZipStore has no synchronous methods"):
        storage.answer(Get("k"), print)


def test_an_error_that_a_flow_raises_passes_through() -> None:
    def flow() -> Steps[None]:
        yield [Get("a")]
        raise ValueError

    steps = each_once(flow())
    next(steps)
    with pytest.raises(ValueError):  # noqa: PT011 - it has no message
        steps.send([b""])


@pytest.mark.parametrize("others", [b"other ", b""], ids=["overtaken", "refused"])
def test_an_update_waits_for_any_number_of_other_writers(
    monkeypatch: pytest.MonkeyPatch, others: bytes
) -> None:
    """It is tried again as long as others change the object, else as often as agreed."""
    monkeypatch.setattr("n5zarr.servers.object_store._ATTEMPTS", 3)
    objects = ObjectsInMemory()
    objects.put("k", b"old ")
    seen: list[bytes | None] = []

    def append(old: bytes | None) -> bytes:
        seen.append(old)
        if len(seen) < 8:
            objects.put("k", (old or b"") + others)  # another version, perhaps of the same bytes
        return (old or b"") + b"mine"

    update = each(Update("k", append))
    if others:
        ZarrStorage(ObjectStore(objects)).run(update, print)
        assert seen == [b"old " + n * others for n in range(8)]
        assert bytes(objects.get("k").bytes()) == b"old " + 7 * others + b"mine"
        return
    with refused(N5Error, "changed", "k: expected to update the object, but the service"):
        ZarrStorage(ObjectStore(objects)).run(update, print)
    assert seen == [b"old "] * 3


def test_both_ends_of_values_of_any_size(ask: Ask) -> None:
    """A short value comes whole, and an empty one has no bytes."""
    value = bytes(range(97))
    ask(one_by_one(Put("long", value), Put("short", b"12345"), Put("empty", b"")))
    answers: list[Any] = ask(each(*(Ends(k, 7, 5) for k in ("long", "short", "empty", "none"))))
    ends = [None if a is None else (a[0], bytes(a[1]), bytes(a[2])) for a in answers]
    assert ends == [(97, value[:7], value[-5:]), (5, b"12345", b""), (0, b"", b""), None]


def test_a_part_of_a_value_is_read_alone(ask: Ask) -> None:
    ask(each(Put("k", bytes(range(97)))))
    answers: list[Any] = ask(each(Get("k", part=(11, 20))))
    assert bytes(answers[0]) == bytes(range(11, 31))


@pytest.mark.parametrize("storage", ["memory", "objects", "url", "cached"], indirect=True)
def test_all_keys_of_a_store_are_removed(storage: Storage) -> None:
    """The root itself stays: it may be a bucket."""
    storage.run(each(Put("g/a/k", b"1"), Put("b", b"2")), print)
    sync(storage.store.clear())
    assert storage.run(read_each(["g/a/k", "b"]), print) == [None, None]
    storage.run(each(RemoveTree("none")), print)
    storage.run(each(Put("c", b"3")), print)
    assert storage.run(read_key("c"), print) == b"3"


def test_storage_with_a_cache_is_that_of_its_store() -> None:
    """It is printed by the store, and gives parts of values that it does not keep."""
    memory, options = MemoryStore(), CacheOptions(bytes=50)
    storage = ZarrStorage(memory, cache=options)
    assert str(storage) == str(memory)
    assert storage.is_same_place(ZarrStorage(memory, cache=CacheOptions(bytes=51)))
    assert storage.has_cache
    assert storage.read_only
    assert pickle.loads(pickle.dumps(storage)).has_cache
    sync(memory.set("k", cpu.Buffer.from_bytes(bytes(range(97)))))  # larger than the cache
    for _ in range(2):
        answers: list[Any] = storage.run(each(Get("k"), Get("k", part=(94, 3))))
        value, part = answers
        assert (bytes(value), bytes(part)) == (bytes(range(97)), bytes([94, 95, 96]))


@pytest.mark.skipif(vars(locks)["fcntl"] is None, reason="there are no such locks")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_used_with_a_warning(
    number: int, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems have none; an update tells what may be lost."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    storage = LocalFiles(tmp_path / "c.n5")
    storage.run(each(Put("k", b"1")), said.append)
    monkeypatch.setattr(locks, "_set", refuse)
    monkeypatch.setattr(locks, "_unlock", lambda _: None)
    assert storage.run(read_key("k"), said.append) == b"1"
    storage.run(each(Put("k", b"2")), said.append)  # replacing a whole file needs no lock
    assert said == []
    assert storage.run(each(Update("k", lambda old: (old or b"") + b"+")), said.append) == [b"2+"]
    (message,) = said
    assert message.endswith("k: the file system has no locks; updates by other writers may be lost")
    assert (tmp_path / "c.n5/k").read_bytes() == b"2+"
