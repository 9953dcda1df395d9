"""Storage in any store of zarr's: requests, caches, locks within the process, threads, forks."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from obstore.store import MemoryStore as ObjectsInMemory
from zarr.buffer import cpu
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, WrapperStore, ZipStore

from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.storage import cache as caches
from n5zarr.storage import forks, held, interface, key_locks, locks, requests, services, threads
from n5zarr.storage.cache import Answers, Cache, CacheOptions, Kept
from n5zarr.storage.held import HeldStore
from n5zarr.storage.key_locks import HeldError, holding, holding_async, waited_for
from n5zarr.storage.requests import (
    Ends,
    Entry,
    Exists,
    FileThatNames,
    Get,
    KeysBelow,
    List,
    Paused,
    Put,
    Remove,
    RemoveTree,
    Stamp,
    Update,
    Warn,
    Work,
    drive,
    drive_async,
    each_once,
    put_each,
    request_each,
)
from n5zarr.storage.services import changed, service_of
from n5zarr.storage.threads import NoThreadError, Pool, run_each
from n5zarr.storage.zarr_store import ZarrStorage
from tests.refusals import refused
from tests.unit.storage.posix import posix

run: Any = asyncio.run
DATA = b"0123456789"
VALUES = {"c/k": DATA, "c/d/x": b"1", "c/empty": b"", "top": b"22"}


class Noting(MemoryStore):
    """A store whose synchronous methods do not work; notes what it is asked."""

    _supports_sync_io = False

    def __init__(self, values: Any = VALUES, **options: Any) -> None:
        super().__init__({k: cpu.Buffer.from_bytes(v) for k, v in values.items()}, **options)
        self.asked: list[Any] = []

    async def get(self, key: str, *args: Any, **options: Any) -> Any:
        self.asked.append(("get", key, *(args[1:2] or [None])))
        return await super().get(key, *args, **options)

    async def set(self, key: str, value: Any, *args: Any) -> None:
        self.asked.append(("set", key, value.to_bytes()))
        await super().set(key, value, *args)

    async def delete(self, key: str) -> None:
        self.asked.append(("delete", key))
        await super().delete(key)

    async def delete_dir(self, prefix: str) -> None:
        self.asked.append(("delete_dir", prefix))
        await super().delete_dir(prefix)


class Quick(Noting):
    """A store whose synchronous methods work."""

    _supports_sync_io = True

    def get_sync(self, *args: Any, **options: Any) -> Any:
        return super().get_sync(*args, **options)

    def set_sync(self, *args: Any, **options: Any) -> None:
        super().set_sync(*args, **options)

    def delete_sync(self, *args: Any, **options: Any) -> None:
        super().delete_sync(*args, **options)


def ask(storage: Any, *asked: Any, warn: Any = print) -> Any:
    return storage.run(request_each(asked), warn)


@pytest.mark.parametrize("make", [Noting, Quick])
def test_requests_to_a_store(make: Any) -> None:
    store, said = make(), list[str]()
    storage = ZarrStorage(store)
    found = ask(
        storage, Get("c/k"), Get("c/k", part=(2, 3)), Get("x"), Ends("c/k", 2, 1), Stamp("c/k"),
        Exists("c/k"), Exists("x"), List("c"), List("x"), FileThatNames("c", "*", print),
        Work(lambda: 7), Warn("careful"), KeysBelow("c", lambda keys, sizes: (keys, sizes)),
        warn=said.append,
    )  # fmt: skip
    assert [bytes(found[0]), bytes(found[1]), *found[2:7]] == [
        DATA, b"234", None, (10, b"01", b"9"), None, True, False,
    ]  # fmt: skip
    assert [entry.name for entry in found[7]] == ["d", "empty", "k"]
    assert (found[8:12], said) == ([None, None, 7, None], ["careful"])
    ((keys, sizes),) = found[12]
    assert (sorted(keys), sizes) == (["d/x", "empty", "k"], None)
    ask(storage, Put("n/k", b"new"), Remove("top"), Update("c/k", lambda old: (old or b"")[:2]))
    assert [bytes(v) for v in ask(storage, Get("n/k"), Get("c/k"))] == [b"new", b"01"]
    assert ask(storage, Update("y", lambda old: old), Update("c/k", lambda _: None)) == [None, None]
    ask(storage, Put("c/attributes.json", b"{}"))
    store.asked.clear()
    ask(storage, RemoveTree("c"))
    assert store.asked[0] == ("delete", "c/attributes.json")
    assert store.asked[1] == ("delete_dir", "c")
    assert sorted(store._store_dict) == ["n/k"]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(3, 7, (10, DATA, b"")), (3, 9, (10, DATA, b"")), (3, 6, (10, b"012", b"456789")),
     (10, 2, (10, DATA, b"")), (9, 1, (10, DATA, b"")), (3, 0, (10, b"012", b""))],
)  # fmt: skip
def test_the_ends_of_a_value(first: int, last: int, expected: Any) -> None:
    service = service_of(Noting())
    assert run(service.ends("c/k", first, last)) == expected
    assert run(service.ends("x", first, last)) is None
    assert run(service.ends("c/empty", first, last)) == (0, b"", b"")


def test_an_update_writes_only_what_has_changed() -> None:
    store = Noting()
    service = service_of(store)
    cases: list[tuple[Any, Any, list[Any]]] = [
        (lambda old: old, DATA, []),
        (lambda old: old + b"!", DATA + b"!", [("set", "c/k", DATA + b"!")]),
        (lambda _: None, None, [("delete", "c/k")]), (lambda _: None, None, []),
        (lambda old: b"" if old is None else b"x", b"", [("set", "c/k", b"")]),
    ]  # fmt: skip
    for change, expected, written in cases:
        store.asked.clear()
        assert run(service.update(Update("c/k", change))) == expected
        assert store.asked == [("get", "c/k", None), *written]


@pytest.mark.parametrize(("n_bytes", "same"), [(0, True), (2**12, True), (2**12 + 1, False)])
def test_much_work_is_done_on_a_thread(n_bytes: int, same: bool) -> None:
    def change(old: bytes | None) -> bytes:
        return b"%d %b" % (threading.get_ident(), old or b"none")

    thread, _, old = run(changed(Update("k", change, n_bytes), b"old")).partition(b" ")
    assert ((int(thread) == threading.get_ident()), old) == (same, b"old")


def test_errors_of_sizes_and_values() -> None:
    class Failing(Noting):
        size: Any = 10
        value: Any = None

        async def getsize(self, key: str) -> int:
            if isinstance(self.size, Exception):
                raise self.size
            return int(self.size)

        async def get(self, *args: Any, **options: Any) -> Any:
            if isinstance(self.value, Exception):
                raise self.value
            return self.value and cpu.Buffer.from_bytes(self.value)

    store = Failing()
    service = service_of(store)
    torn, lost = OSError("torn"), FileNotFoundError("lost")
    for value, size, expected in [
        (torn, 0, (0, b"", b"")), (torn, 10, torn), (None, lost, None), (b"012", lost, lost),
        (b"0123", 4, (4, b"0123", b"")), (b"012", 10, (10, b"012", b"012")),
    ]:  # fmt: skip
        store.value, store.size = value, size
        if isinstance(expected, Exception):
            with pytest.raises(OSError, match=str(expected)):
                run(service.ends("k", 3, 3))
        else:
            assert run(service.ends("k", 3, 3)) == expected


def test_what_a_service_knows_of_a_store(tmp_path: Path) -> None:
    objects = ObjectStore(ObjectsInMemory())
    memory = MemoryStore()
    assert type(service_of(objects)).__name__ == "ServedObjectStore"
    fsspec: Any = pytest.importorskip("fsspec")
    wrap = pytest.importorskip("fsspec.implementations.asyn_wrapper").AsyncFileSystemWrapper
    for store, shared in [
        (memory, False), (objects, False), (LocalStore(tmp_path), False),
        (FsspecStore(wrap(fsspec.filesystem("memory"), asynchronous=True)), False),
        (FsspecStore(wrap(fsspec.filesystem("file"), asynchronous=True)), True),
    ]:  # fmt: skip
        service = service_of(store)
        assert (service.is_shared, service.is_conditional, service.lists_all) == (
            shared, False, True,
        )  # fmt: skip
        assert service.where("k")[1] == "k" or service.where("k")[1].endswith("k")
    plain = service_of(memory)
    assert (plain.get_waiting, plain.where("k"), plain.zarr_store) == (
        None, (id(memory), "k"), memory,
    )  # fmt: skip
    assert str(plain) == str(memory)
    assert service_of(plain) is plain  # type: ignore[arg-type]
    local = LocalStore(tmp_path)
    for store, listed in [(local, False), (WrapperStore(local), False),
                          (memory, True), (WrapperStore(memory), True)]:  # fmt: skip
        assert (
            run(service_of(store).take_keys("", len)) is not None if not listed else True
        ) is listed
    kept = run(service_of(Noting()).fetch("c/k", None, 5.0))
    assert (kept.answer, kept.at, run(service_of(Noting()).fetch("x", None, 5.0)).answer) == (
        DATA, 5.0, None,
    )  # fmt: skip
    many = Noting({f"d/{i}": b"" for i in range(2001)} | {"e": b""})
    pages = run(service_of(many).take_keys("d", lambda keys, sizes: (keys, sizes)))
    assert [(len(keys), sizes) for keys, sizes in pages] == [(1000, None), (1000, None), (1, None)]
    assert not any(key.startswith("d/") for keys, _ in pages for key in keys)
    assert len(run(service_of(many).take_keys("", lambda keys, _: keys))[2]) == 2
    assert sorted(run(service_of(Noting()).sizes_below("c"))) == ["c/d/x", "c/empty", "c/k"]
    assert len(run(service_of(Noting()).sizes_below(""))) == 4
    assert service_of(Noting())._keys_below("c") is not None


def test_a_listing_without_markers() -> None:
    class Marked(MemoryStore):
        async def list_dir(self, prefix: str) -> Any:
            for name in ("b/", "a", f"{prefix}/", "x/y", "a"):
                yield name

    service = service_of(Marked())
    assert run(service.entries("d")) == [Entry("a", None), Entry("b", None), Entry("d", None)]
    assert run(service.entries("d", few=True)) == run(service.entries("d"))


def test_one_request_for_all_tasks_that_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Noting({"g/attributes.json": b"{}", "g/k": b"1"})
    storage = ZarrStorage(store)

    async def together(*asked: Any) -> list[Any]:
        flows = (storage.run_async(request_each([each])) for each in asked)
        return list(await asyncio.gather(*flows))

    for asked, n in [
        ([Get("g/attributes.json")] * 3, 1), ([Get("g/k")] * 3, 3),
        ([Get("g/attributes.json"), Get("g/attributes.json", part=(0, 1))], 2),
        ([Get("g/attributes.json"), Get("attributes.json")], 2),
    ]:  # fmt: skip
        store.asked.clear()
        run(together(*asked))
        assert len(store.asked) == n
        assert storage._asked == {}
    listed: list[str] = []
    list_dir = store.list_dir

    def noting(path: str) -> Any:
        listed.append(path)
        return list_dir(path)

    monkeypatch.setattr(store, "list_dir", noting)
    run(together(List("g"), List("g"), List("g", few=True), List("")))
    assert sorted(listed) == ["", "g", "g"]


def test_a_cache_answers_from_memory(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "n5zarr.storage")
    store = Noting({"g/k": b"1"})
    storage = ZarrStorage(store, "b", None, CacheOptions(recheck=True))
    fixed = ZarrStorage(store, cache=CacheOptions(recheck=False))
    assert (storage.read_only, fixed.read_only, storage.supports_sync) == (False, True, False)
    assert (storage.has_cache, ZarrStorage(store).has_cache, storage.backend) == (True, False, "b")
    for _ in range(2):
        assert bytes(ask(fixed, Get("g/k"))[0]) == b"1"
        assert ask(fixed, Get("x"), Exists("x"), Exists("g/k")) == [None, False, True]
    assert sorted(key for _, key, _ in store.asked) == ["g/k", "x"]
    assert any("answered from memory" in message for message in caplog.messages)
    for request, expected in [
        (Put("g/k", b"2"), b"2"), (Update("g/k", lambda _: b"3"), b"3"), (Remove("g/k"), None),
    ]:  # fmt: skip
        ask(fixed, request)
        (found,) = ask(fixed, Get("g/k"))
        assert (found if found is None else bytes(found)) == expected
    ask(fixed, Put("g/k", b"4"), Get("g/k"))
    ask(fixed, RemoveTree("g"))
    assert ask(fixed, Get("g/k")) == [None]
    assert ask(fixed, Get("g/k", part=(0, 1))) == [None]  # not from memory
    assert fixed.get_waiting is None
    with pytest.raises(N5UnsupportedError, match="recheck=True, or to stay read only") as caught:
        fixed.with_read_only(read_only=False)
    assert (caught.value.kind, fixed.with_read_only(read_only=True)) == ("read-only", fixed)
    again: Any = pickle.loads(
        pickle.dumps(ZarrStorage(MemoryStore(), "b", None, CacheOptions(bytes=5)))
    )
    assert (again.backend, again._cache.options.bytes) == ("b", 5)


def test_storage_that_is_read_only_and_its_copies() -> None:
    closed = ZarrStorage(MemoryStore(read_only=True), "b")
    assert (closed.read_only, closed.with_read_only(read_only=True)) == (True, closed)
    made = closed.with_read_only(read_only=False)
    assert (made.read_only, made.backend, made.is_same_place(closed)) == (False, "b", True)
    one, two = ObjectsInMemory(), ObjectsInMemory()
    objects = [ZarrStorage(ObjectStore(inner)) for inner in (one, one, two)]
    assert [objects[0].is_same_place(other) for other in objects] == [True, True, False]
    assert not objects[0].is_same_place(closed)
    assert not closed.is_same_place(ZarrStorage(MemoryStore()))
    fsspec: Any = pytest.importorskip("fsspec")
    wrap = pytest.importorskip("fsspec.implementations.asyn_wrapper").AsyncFileSystemWrapper
    fs = wrap(fsspec.filesystem("memory"), asynchronous=True)
    folders = [ZarrStorage(FsspecStore(fs, path=path)) for path in ("a", "a", "b")]
    assert [folders[0].is_same_place(other) for other in folders] == [True, True, False]


def test_reading_without_a_loop(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "n5zarr.storage.requests")
    objects = ObjectStore(ObjectsInMemory())
    run(objects.set("k", cpu.Buffer.from_bytes(DATA)))
    for storage in (ZarrStorage(objects), ZarrStorage(Quick({"k": DATA}))):
        caplog.clear()
        read: Any = storage.get_waiting
        assert (bytes(read("k")), read("x")) == (DATA, None)
        assert [m.rpartition("/")[2] for m in caplog.messages] == ["k: 10 bytes", "x: nothing"]
    assert ZarrStorage(Noting()).get_waiting is None
    store = WrapperStore(Noting())
    with pytest.raises(N5UnsupportedError, match="has no synchronous methods; use") as caught:
        ZarrStorage(objects).answer(Get("k"), print)
    assert (caught.value.kind, ZarrStorage(store).supports_sync) == ("option", False)


# --------------------------------------------------------------------------------------- the cache


@pytest.mark.parametrize(
    ("options", "match"),
    [({"recheck": "x"}, "recheck: expected 'open', True, False or seconds, got 'x'"),
     ({"recheck": -0.1}, "got -0.1"), ({"bytes": -1}, "bytes: expected a number of bytes, got -1")],
)  # fmt: skip
def test_wrong_options_of_a_cache(options: Any, match: str) -> None:
    with pytest.raises(N5UnrepresentableError, match=match):
        CacheOptions(**options)
    assert [CacheOptions(recheck=r).writes for r in (True, False, 1, "open")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert (CacheOptions(bytes=0, recheck=0).bytes, CacheOptions().bytes) == (0, 2**28)


def test_the_last_used_answers_stay() -> None:
    size = 200 + 1 + 10  # of a key and its value
    answers = Answers(2 * size)
    for key in "abc":
        answers.keep(key, Kept(DATA))
        answers.find("a")
    assert [answers.find(key) and key for key in "abcd"] == ["a", None, "c", None]
    answers.keep("c", Kept(DATA))  # again
    assert answers.find("a")
    answers.keep("d", Kept(bytes(2 * size - 200)))  # too large
    assert [bool(answers.find(key)) for key in "acd"] == [True, True, False]
    answers.keep("d", Kept(bytes(2 * size - 201)))
    assert [bool(answers.find(key)) for key in "acd"] == [False, False, True]
    before = answers.n_changes
    answers.forget("d")
    assert (answers.find("d"), answers.n_changes) == (None, before + 1)
    answers.keep("a", Kept(b"old"), before)
    assert answers.find("a") is None
    answers.keep("a", Kept(b"new"), before + 1)
    answers.keep("b", Kept(b""))
    answers.forget()
    assert (answers.find("a"), answers.find("b"), answers._n_bytes) == (None, None, 0)
    for what, answer, n in [
        (("x", 1), [1, 2], 200 + 128),
        ("k", None, 201),
        ("k", memoryview(b"1"), 202),
    ]:
        assert caches._size(what, Kept(answer)) == n
    answers.keep("k", Kept(b""))
    answers.begin_anew()
    assert answers.find("k")
    answers._lock.acquire()
    answers.begin_anew()
    assert answers.find("k") is None


def test_when_values_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now, fetched = [100.0], list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    async def fetch(key: str, kept: Any, at: float) -> Kept[bytes | None]:
        fetched.append(key)
        return Kept(None if key.startswith("missing") else b"1", at)

    def asked(cache: Cache, *keys: str) -> list[str]:
        fetched.clear()
        for key in keys:
            now[0] += 1
            run(cache.get(key, fetch))
        return list(fetched)

    document = "g/d/attributes.json"
    opened = Cache(CacheOptions())
    assert asked(opened, "g/d/0", "g/d/0", document, "g/d/0", "g/d/0") == [
        "g/d/0", document, "g/d/0",
    ]  # fmt: skip
    assert asked(opened, document, document) == [document] * 2
    assert asked(opened, "g/d/0", "g/attributes.json", "g/d/0", "attributes.json", "g/d/0") == [
        "g/d/0", "g/attributes.json", "g/d/0", "attributes.json", "g/d/0",
    ]  # fmt: skip
    assert asked(opened, "other/attributes.json", "missing/attributes.json", "g/d/0", "missing/0",
                 "missing/0") == ["other/attributes.json", "missing/attributes.json",
                                  "missing/0"]  # fmt: skip
    for first, second in [("h/0", "h/1"), ("missing/2", "missing/attributes.json")]:
        assert asked(opened, first, second, first) == [first, second]
    assert asked(Cache(CacheOptions(recheck=True)), "k", "k") == ["k", "k"]
    assert asked(Cache(CacheOptions(recheck=False)), "k", "k", document, document) == [
        "k",
        document,
    ]
    seconds = Cache(CacheOptions(recheck=1))
    assert asked(seconds, "k", "k") == ["k"]
    assert asked(seconds, "k") == ["k"]
    assert (run(seconds.get("k", fetch)), run(seconds.get("missing", fetch))) == (b"1", None)


# --------------------------------------------------------------------------- locks of this process


def test_a_lock_excludes_threads_and_tasks() -> None:
    now, most = [0], [0]

    def change() -> int:
        now[0] += 1
        most[0] = max(most[0], now[0])
        time.sleep(0.002)
        now[0] -= 1
        return now[0]

    async def change_async() -> int:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.002)
        now[0] -= 1
        return now[0]

    async def tasks() -> None:
        await asyncio.gather(*(holding_async("k", change_async) for _ in range(3)))

    workers = [threading.Thread(target=holding, args=("k", change)) for _ in range(3)]
    workers.append(threading.Thread(target=run, args=(tasks(),)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (most[0], key_locks._held) == (1, {})
    with pytest.raises(ZeroDivisionError):
        holding("k", lambda: 1 // 0)
    assert holding("k", lambda: 5) == 5
    assert holding("k", lambda: holding("other", lambda: 6)) == 6


def test_code_that_would_wait_for_itself() -> None:
    with pytest.raises(HeldError, match="does not end") as caught:
        holding("k", lambda: holding("k", int))
    assert (caught.value.errno, caught.value.filename) == (errno.ETIMEDOUT, "k")
    assert holding("k", lambda: holding("k", lambda: 7, replaces=True)) == 7
    assert holding("k", lambda: holding("k", lambda: 8), replaces=True) == 8

    async def inner() -> int:
        return 9

    def in_a_loop(**options: Any) -> Any:
        return waited_for(run, holding_async("k", inner, **options))

    with pytest.raises(HeldError):
        holding("k", in_a_loop)
    assert holding("k", lambda: in_a_loop(replaces=True)) == 9
    assert key_locks._held == {}


def test_who_holds_a_lock_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_locks, "_PATIENCE", 0.02)
    begun, may_end = threading.Event(), threading.Event()

    def change() -> None:
        begun.set()
        may_end.wait(10)

    worker = threading.Thread(target=holding, args=("k", change))
    worker.start()
    begun.wait(10)
    with pytest.raises(HeldError):
        holding("k", int)
    with pytest.raises(HeldError):
        holding("k", int, replaces=True)
    may_end.set()
    worker.join()

    async def never() -> None:
        await asyncio.sleep(30)

    loop = asyncio.new_event_loop()
    task = loop.create_task(holding_async("k", never))
    loop.run_until_complete(asyncio.sleep(0.01))
    assert holding("k", lambda: 5) == 5  # its loop does not run
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()


def test_a_loop_that_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    me: Any = key_locks._Holder("k", replaces=False, loop=SimpleNamespace())  # type: ignore[arg-type]
    me.thread = -1  # no such thread runs
    found = []
    for after in (0.0, 1.0, 2.6, 9.0, 9.0, 1.0):
        clock[0] += after
        found.append(me.is_blocked)
    assert found == [False, False, False, False, True, False]  # after 20 seconds
    clock[0] += 9.0
    assert me.is_blocked
    clock[0] += 11.0  # nobody has looked
    assert not me.is_blocked
    me.thread = threading.get_ident()  # which runs
    for _ in range(4):
        clock[0] += 9.0
        assert not me.is_blocked
    assert not key_locks._Holder("k", replaces=False).is_blocked


def test_pauses_get_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Iterator[bool] = iter([False] * 12 + [True])
    me, other = (key_locks._Holder("k", replaces=False) for _ in range(2))
    other.thread = -1
    monkeypatch.setattr(key_locks, "_holder_for", lambda me: me if next(answers) else other)
    assert [round(p * 2**14) for p in key_locks._pauses(me, ())] == [
        1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256,
    ]  # fmt: skip


# ---------------------------------------------------------------------------------- locks on files


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    (tmp_path / "k").write_bytes(DATA)
    return lambda flags=os.O_RDWR: locks.HeldFile(tmp_path / "k", flags)


def is_free(opened: Any, kind: str = "F_WRLCK") -> bool:
    with opened() as other:
        taken = locks._try(other.file, kind)
        if taken:
            locks._unlock(other.file)
        return taken


@posix
def test_a_file_is_locked_to_read_or_write(opened: Any) -> None:
    with opened() as held:
        with locks.reading(held, "k") as is_sound:
            assert (is_free(opened), is_free(opened, "F_RDLCK"), is_sound()) == (False, True, True)
        assert is_free(opened)
        with locks.writing(held, "k", print):
            assert (is_free(opened), is_free(opened, "F_RDLCK")) == (False, False)
            assert not held.is_changing
            with locks.changing(held):
                assert held.is_changing
            assert not held.is_changing
        assert is_free(opened)
        assert held.is_open
    assert not held.is_open
    gc.collect()
    assert locks._announced() == []
    with pytest.raises(FileNotFoundError):
        locks.HeldFile("/no/such", os.O_RDONLY)


@posix
@pytest.mark.parametrize("has_ofd", [True, False])
def test_the_locks_of_each_system(
    opened: Any, monkeypatch: pytest.MonkeyPatch, has_ofd: bool
) -> None:
    """Those of open files on Linux, and ``flock`` elsewhere."""
    if has_ofd and not locks._has_ofd():
        pytest.skip("there are no such locks")
    monkeypatch.setattr(locks, "_has_ofd", lambda: has_ofd)
    for waits in (False, True):
        for kind, others in [("F_WRLCK", (False, False)), ("F_RDLCK", (False, True))]:
            with opened() as held:
                locks._set(held.file, kind, waits=waits)
                assert (is_free(opened), is_free(opened, "F_RDLCK")) == others
                locks._unlock(held.file)
                assert is_free(opened)
    with opened() as held, opened() as other:
        assert locks._holds(held.file) is has_ofd  # or nobody
        locks._set(other.file, "F_WRLCK")
        assert not locks._holds(held.file)
        assert locks._holds(other.file) is has_ofd


def test_writers_of_one_process_exclude_each_other(opened: Any) -> None:
    now, most = [0], [0]

    def write() -> None:
        with opened() as held, locks.writing(held, "k", print):
            now[0] += 1
            most[0] = max(most[0], now[0])
            time.sleep(0.003)
            now[0] -= 1

    workers = [threading.Thread(target=write) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most[0] == 1


@posix
def test_who_is_interrupted(opened: Any) -> None:
    with opened() as held, locks.writing(held, "k", print):
        (lock,) = locks._announced()
        assert (lock.is_held, lock.is_interrupted(), lock.is_stuck()) == (True, True, False)
        assert threads.WORK.submit(lock.is_interrupted).result(5) is False
        with opened() as inner:
            other = locks._Lock(inner, to_write=True)  # waits
            assert (lock.is_stuck(), other.is_interrupted()) == (True, False)
            assert (lock.others(), other.others(), lock.place == other.place) == (
                [other], [lock], True,
            )  # fmt: skip
    assert not lock.is_held
    with opened() as held, locks.reading(held, "k"):
        (lock,) = locks._announced()
        assert (lock.is_held, lock.is_reading, lock.is_interrupted()) == (False, True, True)


@posix
def test_code_that_interrupts_a_writer_does_not_wait(opened: Any) -> None:
    with opened() as held, locks.writing(held, "k", print), opened() as inner:
        with locks.reading(inner, "k") as is_sound:  # the writer has not begun
            assert is_sound()
            with locks.changing(held):
                pass
            assert not is_sound()
        said = "finalizer or a signal"
        with locks.changing(held), pytest.raises(TimeoutError, match=said):
            locks.reading(inner, "k").__enter__()
        with pytest.raises(TimeoutError, match=said) as caught:
            locks.writing(inner, "k", print).__enter__()
        assert (caught.value.errno, caught.value.filename) == (errno.ETIMEDOUT, "k")
    with opened() as held, locks.reading(held, "k"), opened() as inner:
        with pytest.raises(TimeoutError), locks.writing(inner, "k", print):
            raise AssertionError
        with locks.reading(inner, "k") as is_sound:
            assert is_sound()


@posix
def test_a_writer_that_holds_a_lock_too_long(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    begun, may_end = threading.Event(), threading.Event()

    def write() -> None:
        with opened() as held, locks.writing(held, "k", print):
            begun.set()
            may_end.wait(10)

    worker = threading.Thread(target=write)
    worker.start()
    begun.wait(10)
    with opened() as held, pytest.raises(TimeoutError, match="within a minute"):
        locks.writing(held, "k", print).__enter__()
    with opened() as held, locks.reading(held, "k") as is_sound:
        assert is_sound()  # it is not writing now
    may_end.set()
    worker.join()


@posix
@pytest.mark.parametrize(("code", "warned"), [(errno.ENOLCK, True), (errno.EIO, False)])
def test_a_file_system_without_locks(
    opened: Any, monkeypatch: pytest.MonkeyPatch, code: int, warned: bool
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(code, "x")

    said: list[str] = []
    monkeypatch.setattr(locks, "_set", refuse)
    with opened() as held:
        if warned:
            with locks.writing(held, "k", said.append), locks.reading(held, "k") as is_sound:
                assert is_sound()
            assert said == ["k: the file system has no locks; updates by other writers may be lost"]
            return
        with pytest.raises(OSError, match="x"), locks.writing(held, "k", said.append):
            raise AssertionError
        with pytest.raises(OSError, match="x"), locks.reading(held, "k"):
            raise AssertionError
    assert said == []


@posix
def test_one_run_works_in_a_directory(tmp_path: Path) -> None:
    with locks.alone(tmp_path / "d") as first:
        assert (first, (tmp_path / "d").is_dir()) == (True, True)
        with locks.alone(tmp_path / "d") as second:
            assert not second
        assert (tmp_path / "d").is_dir()
    assert not (tmp_path / "d").exists()
    (tmp_path / "d").mkdir()
    (tmp_path / "d/k").touch()
    with locks.alone(tmp_path / "d") as third:
        assert third
    assert (tmp_path / "d/k").exists()


# ---------------------------------------------------------------------------------- flows, threads


def flow(*batches: Any) -> Any:
    found = []
    for batch in batches:
        try:
            found.append((yield batch))
        except ValueError as err:
            found.append(str(err))
    return found


def test_flows_are_driven() -> None:
    def answer(request: Any) -> Any:
        if request == 13:
            raise ValueError("bad")
        return -request

    async def answer_all(asked: Any) -> Any:
        return [answer(each) for each in asked]

    expected = [[-1, -2], "bad", [], [-3]]
    batches = [[1, 2], [13, 1], [], [3]]
    assert drive(flow(*batches), answer) == expected
    assert run(drive_async(flow(*batches), answer_all)) == expected
    stop: Any = [13, 1]
    paused = drive(flow(*batches), answer, pauses_at=lambda asked: [*asked] == stop)
    assert isinstance(paused, Paused)
    assert paused.requests == stop
    steps = flow(*batches)
    first: Any = drive(steps, answer, pauses_at=lambda _: True)
    assert drive(steps, answer, requests=first.requests) == expected
    steps = flow(*batches)
    assert run(drive_async(steps, answer_all, next(steps))) == expected
    assert drive(flow(), answer, pauses_at=lambda _: True) == []
    put: Any = drive(put_each([("k", b"1")]), lambda r: r, pauses_at=lambda _: True)
    assert put.requests == [Put("k", b"1")]


def test_each_plain_key_is_read_once() -> None:
    asked: list[Any] = []

    def answer(request: Any) -> Any:
        asked.append(request)
        if request == Get("bad"):
            raise ValueError("bad")
        return None if request == Get("none") else len(asked)

    part, settled = Get("k", part=(0, 1)), Get("k", settled=True)
    batches = [
        [Get("k"), part], [Get("k"), part, settled], [Get("k")], [Get("bad"), Get("k")],
        [Get("x"), Get("k")], [Get("none"), Exists("k")], [Get("none"), Exists("k")],
    ]  # fmt: skip
    assert drive(each_once(flow(*batches)), answer) == [
        [1, 2], [1, 3, 4], [1], "bad", [6, 1], [None, 8], [None, 9],
    ]  # fmt: skip
    assert len(asked) == 9


@pytest.mark.parametrize(
    ("request_", "answer", "text"),
    [
        (Get("k"), b"12", "Get c/k: 2 bytes"), (Get("k", part=(3, 4)), memoryview(b"1"),
                                                "Get c/k, bytes 3 to 7: 1 bytes"),
        (Get("k"), None, "Get c/k: nothing"), (Exists("k"), True, "Exists c/k: there"),
        (Put("k", b"123"), None, "Put c/k: 3 bytes"), (Remove("k"), None, "Remove c/k: done"),
        (RemoveTree("d"), None, "RemoveTree c/d: done"), (List("d"), [1, 2], "List c/d: 2 entries"),
        (List("d"), None, "List c/d: nothing"), (List("d"), [], "List c/d: 0 entries"),
        (Get("k"), ValueError("secret"), "Get c/k: ValueError"), (Work(print), 5, None),
        (Warn("x"), None, None), (Ends("k", 1, 1), (1, b"", b""), "Ends c/k: there"),
        (KeysBelow("d", print), None, "KeysBelow c/d: nothing"),
        (FileThatNames("d", "*", print), b"1", "FileThatNames c/d: 1 bytes"),
    ],
)  # fmt: skip
def test_requests_are_logged(
    caplog: pytest.LogCaptureFixture, request_: Any, answer: Any, text: Any
) -> None:
    caplog.set_level("DEBUG", "n5zarr.storage.requests")
    assert requests.logs_requests()
    requests.log_request("c", request_, answer)
    assert caplog.messages == ([] if text is None else [text])
    caplog.set_level("INFO", "n5zarr.storage.requests")
    assert not requests.logs_requests()


def test_storage_logs_answers_and_errors(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "n5zarr.storage.requests")
    storage = ZarrStorage(Quick({"k": DATA}))
    assert bytes(ask(storage, Get("k"))[0]) == DATA
    answer = storage.answer_with(interface.ignore_warning)
    answer(Get("x"))
    with pytest.raises(ZeroDivisionError):
        ask(storage, Work(lambda: 1 // 0))
    storage.store.get_sync = lambda *_, **__: 1 // 0  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        answer(Get("y"))
    ends = [message.rpartition("/")[2] for message in caplog.messages]
    assert ends == ["k: 10 bytes", "x: nothing", "y: ZeroDivisionError"]
    other = ZarrStorage(Noting({"k": DATA}))
    caplog.clear()
    run(other.run_async(request_each([Get("k"), Stamp("k"), FileThatNames("", "*", print)])))
    assert [message.rpartition("/")[2] for message in caplog.messages] == ["k: 10 bytes"]


def test_threads_make_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_IDLE", 0.05)
    pool, here = Pool("own"), threading.get_ident()
    assert pool.submit(threading.get_ident).result(5) != here
    assert pool.submit(lambda: threading.current_thread().name).result(5) == "own"
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(5)
    nested = Pool("nested")  # one that asks for help is not idle
    assert nested.submit(lambda: nested.submit(lambda: 7, 1).result(5), 1).result(5) == 7
    seen, barrier = [], threading.Barrier(3)
    futures = [pool.submit(lambda: barrier.wait(5)) for _ in range(3)]
    assert sorted(future.result(5) for future in futures) == [0, 1, 2]
    left = [3]

    def again() -> bool:
        left[0] -= 1
        seen.append(left[0])
        return left[0] > 0

    pool.ask(again, 1)
    end = time.monotonic() + 5
    while (pool._threads or pool.asked) and time.monotonic() < end:
        time.sleep(0.01)
    assert (seen, len(pool._threads), len(pool.asked)) == ([2, 1, 0], 0, 0)
    pool.has_ended = True
    with pytest.raises(NoThreadError, match="the process ends"):
        pool.ask(again, 1)
    assert pool.submit(threading.get_ident).result(0) == here
    pool.forget()
    busy = threading.Event()
    first = pool.submit(lambda: busy.wait(5), 1)
    second = pool.submit(int, 1)
    assert (len(pool._threads), second.cancel()) == (1, True)
    busy.set()
    assert first.result(5)

    def refuse(_: Any) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    alone = Pool("alone")
    with pytest.raises(NoThreadError, match="no more"):
        alone.ask(again, 1)
    assert alone.submit(threading.get_ident).result(0) == here


@pytest.mark.parametrize(
    ("n", "concurrency", "limit", "most"),
    [(7, 3, None, 3), (2, 5, None, 2), (7, 5, 2, 2), (0, 3, None, 0)],
)
def test_work_is_done_several_at_a_time(n: int, concurrency: int, limit: Any, most: int) -> None:
    done, now, peak = list[int](), [0], [0]

    async def work(k: int) -> None:
        now[0] += 1
        peak[0] = max(peak[0], now[0])
        await asyncio.sleep(0)
        now[0] -= 1
        done.append(k)
        if k == 20:
            raise ValueError("stop")

    async def start(count: int) -> None:
        await run_each(work, count, concurrency, limit and asyncio.Semaphore(limit))

    run(start(n))
    assert (sorted(done), peak[0]) == ([*range(n)], most)
    with pytest.raises(ValueError, match="stop"):
        run(start(100))
    assert len(done) < n + 40


# ------------------------------------------------------------------------------------------ forks


def test_what_a_forked_process_has_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in [("1", "python"), ("2", "tokio-rt-worker")]:
        assert not forks._may_have_threads(tmp_path) or name == "3"
        (tmp_path / name).mkdir()
        (tmp_path / name / "comm").write_text(text)
    (tmp_path / "0").mkdir()
    assert forks._may_have_threads(tmp_path)
    assert forks._may_have_threads(tmp_path / "missing")
    found = forks._Forks()
    for has_threads, lost in [(False, False), (True, True), (False, True)]:
        monkeypatch.setattr(forks, "_may_have_threads", lambda: has_threads)  # noqa: B023
        before = found.lock, found.number
        found.look()
        found.begin_anew()
        assert (found.has_lost_obstore, found.number, found.lock is before[0]) == (
            lost, before[1] + 1, False,
        )  # fmt: skip
    error = forks.fork_error("c.n5", "why")
    assert (error.kind, str(error)) == (
        "fork", f"c.n5: expected a process that was not forked; why, or {forks.REMEDY}",
    )  # fmt: skip


def nothing() -> None: ...


def test_a_store_of_a_parent_is_replaced(  # noqa: PLR0915 - one after the other
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as made:
        run(made.set("k", cpu.Buffer.from_bytes(DATA)))
    kept: list[Any] = []
    own = SimpleNamespace(
        number=0, has_lost_obstore=False, lock=threading.RLock(), abandon=kept.append
    )
    monkeypatch.setattr(held, "FORKS", own)
    archive, begun = ZipStore(tmp_path / "a.zip", mode="r"), list[int]()
    store: Any = HeldStore(archive, "", None)
    assert not store.is_of_parent
    own.number = 1
    assert store.is_of_parent
    for _ in range(2):
        store.begin_anew("c", lambda: begun.append(1))
    fresh: Any = store.store
    assert (begun, kept, fresh is archive, fresh.path) == (
        [1], [archive], False, tmp_path / "a.zip",
    )  # fmt: skip
    writable = ZipStore(tmp_path / "b.zip", mode="w")
    same = HeldStore(writable, "", None)
    same._replace("c")
    assert same.store is writable
    objects = ObjectStore(ObjectsInMemory())
    own.has_lost_obstore = True
    for reopen, match in [
        (None, "a parent had used obstore"), (lambda: (objects, "x"), "^c: .*a parent had used"),
    ]:  # fmt: skip
        lost = HeldStore(objects, "", reopen)
        assert lost.is_of_parent
        with refused(N5UnsupportedError, "fork", match):
            lost.begin_anew("c", nothing)

    def fails() -> Any:
        raise N5Error("broken", kind="option")

    with pytest.raises(N5UnsupportedError, match=r"\(broken\)"):
        HeldStore(objects, "", fails).begin_anew("c", nothing)
    for read_only in (True, False):
        given = ObjectStore(ObjectsInMemory(), read_only=read_only)
        other = HeldStore(given, "", lambda **_: (MemoryStore(read_only=True), "fsspec"))
        other.begin_anew("c", nothing)
        assert (type(other.store), other.backend, other.store.read_only) == (
            MemoryStore, "fsspec", read_only,
        )  # fmt: skip
        assert (kept[-1], other.is_of_parent) == (given, False)
        again: Any = other.through_fsspec()
        assert not again.read_only
    assert HeldStore(objects, "obstore, as asked for", lambda **_: fails()).through_fsspec() is None
    assert HeldStore(objects, "", None).through_fsspec() is None
    assert HeldStore(objects, "", lambda **_: fails()).through_fsspec() is None
    asked: list[Any] = []

    def reopened(**options: Any) -> Any:
        asked.append(options)
        return MemoryStore(), ""

    HeldStore(objects, "", reopened).through_fsspec()
    assert asked == [{"backend": "fsspec"}]


def test_names_of_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    one, two = HeldStore(store, "", None), HeldStore(WrapperStore(store), "", None)
    assert one.lock_name("k") == two.lock_name("k") == f"{tmp_path}/k"
    monkeypatch.setattr(services._AnyStore, "is_conditional", True)
    three = HeldStore(store, "", None)
    assert three.lock_name("k") == f"{id(three)} {tmp_path}/k"


def test_an_empty_object_of_java_is_removed_through_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, said, removed = ZarrStorage(Noting()), list[str](), list[str]()

    async def sizes(_: str) -> Any:
        return {"c/k": 0}

    class Other:
        async def delete_dir(self, path: str) -> None:
            removed.append(path)

    monkeypatch.setattr(services._AnyStore, "sizes_below", lambda _, path: sizes(path))
    for other in (None, Other()):
        monkeypatch.setattr(HeldStore, "through_fsspec", lambda _: other)  # noqa: B023
        ask(storage, RemoveTree("c"), warn=said.append)
    assert (removed, len(said), said[0][:30]) == (["c"], 1, "c/: an empty group remains: ob")
