"""zarr's store over obstore: in memory, and with a service whose answers are made up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("obstore")

import obstore
from obstore import exceptions
from obstore.store import HTTPStore, MemoryStore, S3Store
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.buffer import cpu

from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.servers import object_store
from n5zarr.servers.object_store import (
    CheckedObjectStore,
    can_wait,
    options_for,
    update_object,
    value_of_object,
)
from n5zarr.storage.cache import Kept
from n5zarr.storage.requests import Entry, Update

run: Any = asyncio.run
DATA = b"0123456789"
PROTOTYPE = cpu.buffer_prototype
VALUES = {"c/k": DATA, "c/d/x": b"1", "c/d/e/y": b"22", "c/empty": b""}


def made(values: dict[str, bytes] = VALUES) -> CheckedObjectStore[Any]:
    inner = MemoryStore()
    for key, value in values.items():
        obstore.put(inner, key, value)
    return CheckedObjectStore(inner)


def in_s3(**options: Any) -> CheckedObjectStore[Any]:
    given: Any = {"endpoint": "https://h:1", "access_key_id": "key1", "region": "r", **options}
    given |= {"secret_access_key": "word"}
    return CheckedObjectStore(S3Store("lab", prefix="p", **given))


@pytest.mark.parametrize(
    ("part", "options", "expected"),
    [
        (None, {}, DATA),
        (RangeByteRequest(2, 5), {"range": (2, 5)}, b"234"),
        (OffsetByteRequest(7), {"range": {"offset": 7}}, b"789"),
        (SuffixByteRequest(3), {"range": {"suffix": 3}}, b"789"),
    ],
)
def test_a_value_and_its_parts(part: Any, options: Any, expected: bytes) -> None:
    assert options_for(part) == options
    store = made()
    value = run(store.get("c/k", PROTOTYPE, part))
    assert (type(value), value.to_bytes()) == (cpu.Buffer, expected)
    assert run(store.get("c/x", PROTOTYPE, part)) is None
    assert bytes(value_of_object(store, "c/k")) == DATA
    read: Any = store.get_waiting
    assert bytes(read("c/k")) == DATA


class Answers:
    """A service: what it answers to a request for an object, or the errors that it raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.answers, self.asked = [*answers], list[Any]()
        for name in ("get_async", "put_async", "delete_async", "head_async"):
            monkeypatch.setattr(obstore, name, self._method(name.removesuffix("_async")))

    def _method(self, name: str) -> Any:
        async def method(_: object, key: str, *data: Any, **options: Any) -> Any:
            self.asked.append((name, key, *data, *options.items()))
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return method


def response(data: bytes = DATA, sent: Any = None, size: int | None = None, **meta: Any) -> Any:
    async def bytes_async() -> bytes:
        return data

    return SimpleNamespace(
        bytes_async=bytes_async, range=sent or (0, len(data)),
        attributes=meta.pop("attributes", {}),
        meta={"size": len(data) if size is None else size, "e_tag": None, "version": None, **meta},
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [response(size=11), response(sent=(0, 9)), response(b"012", (0, 10), 10)]
)
def test_an_answer_with_other_bytes_is_an_error(monkeypatch: Any, wrong: Any) -> None:
    store = made()
    Answers(monkeypatch, wrong, wrong)
    with pytest.raises(OSError, match="expected the bytes 0 to 1"):
        run(store.get("c/k", PROTOTYPE))
    with pytest.raises(OSError, match="expected the bytes 0 to 1"):
        run(store.fetch("c/k", None, 1.0))


def test_a_service_without_suffixes(monkeypatch: Any) -> None:
    store, error = made(), exceptions.NotSupportedError("x")
    answers = Answers(monkeypatch, error, {"size": 10}, response(b"789", (7, 10), 10), error)
    found = run(store.get("c/k", PROTOTYPE, SuffixByteRequest(3)))
    assert found.to_bytes() == b"789"
    assert answers.asked[-1] == ("get", "c/k", ("options", {"range": (7, 10)}))
    with pytest.raises(exceptions.NotSupportedError):
        run(store.get("c/k", PROTOTYPE, RangeByteRequest(1, 2)))


def test_a_value_is_sent_only_if_it_has_changed(monkeypatch: Any) -> None:
    store = made()
    answers = Answers(
        monkeypatch, response(e_tag="t1"), exceptions.NotModifiedError("x"), FileNotFoundError(),
        OSError("lost"), response(b"new"),
    )  # fmt: skip
    first = run(store.fetch("k", None, 1.0))
    assert (first.answer, first.at, first.e_tag) == (DATA, 1.0, "t1")
    again = run(store.fetch("k", first, 2.0))
    assert (again.answer, again.at, again.e_tag) == (DATA, 2.0, "t1")
    gone = run(store.fetch("k", Kept(b"old", 1.0), 3.0))
    assert (gone.answer, gone.at) == (None, 3.0)
    assert [each[2] for each in answers.asked] == [
        ("options", {}), ("options", {"if_none_match": "t1"}), ("options", {}),
    ]  # fmt: skip
    with pytest.raises(OSError, match="lost"):
        run(store.fetch("k", None, 4.0))
    assert run(store.fetch("k", None, 5.0)).answer == b"new"


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (3, 0, (10, b"012", b"")),
        (3, 2, (10, b"012", b"89")),
        (3, 7, (10, DATA, b"")),
        (3, 9, (10, DATA, b"")),
        (10, 2, (10, DATA, b"")),
        (9, 1, (10, DATA, b"")),
    ],
)
def test_the_ends_of_a_value(first: int, last: int, expected: Any) -> None:
    assert run(made().ends("c/k", first, last)) == expected
    assert run(made().ends("c/x", first, last)) is None
    assert run(made().ends("c/empty", first, last)) == (0, b"", b"")


def test_the_end_of_a_value_that_is_gone_and_errors(monkeypatch: Any) -> None:
    start = response(b"012", (0, 3), 10)
    lost = OSError("lost")
    Answers(monkeypatch, start, FileNotFoundError(), lost, {"size": 1})
    assert run(made().ends("k", 3, 2)) is None
    with pytest.raises(OSError, match="lost"):
        run(made().ends("k", 3, 2))


def test_directories_are_listed() -> None:
    store = made({**VALUES, "c/d": b"", "c/k/z": b"1"})
    expected = [Entry("d", True), Entry("empty", False), Entry("k", True)]
    assert run(store.entries("c")) == expected
    assert run(store.entries("")) == [Entry("c", True)]
    assert run(store.entries("x")) is None
    assert {e.name for e in run(store.entries("c", few=True))} == {"d", "empty", "k"}
    assert [e.name for e in run(store.entries("", few=True))] == ["c"]
    assert run(store.entries("x", few=True)) is None
    assert run(made().sizes_below("c/d")) == {"c/d/x": 1, "c/d/e/y": 2}
    assert run(made().sizes_below("")) == {key: len(value) for key, value in VALUES.items()}
    web: Any = CheckedObjectStore(HTTPStore("https://h"))
    with pytest.raises(N5UnsupportedError, match=r"lists .* only if it is a WebDAV") as caught:
        run(web.entries(""))
    assert (caught.value.kind, run(web.entries("", few=True))) == ("listing", None)


def listed(monkeypatch: Any, store: Any, *batches: list[tuple[str, int]]) -> list[Any]:
    asked: list[Any] = []

    async def pages(_: object, **options: Any) -> Any:
        asked.append(options)
        for batch in batches:
            yield [{"path": path, "size": size} for path, size in batch]

    monkeypatch.setattr(obstore, "list", pages)
    return asked


def test_some_entries_and_markers_of_directories(monkeypatch: Any) -> None:
    store = made()
    cases: list[tuple[list[list[tuple[str, int]]], Any]] = [
        ([[("c/d", 0)]], []), ([[], [("c/d/x/y", 1), ("c/d/x/z", 1)]], [Entry("x", None)]),
        ([[("c/d/a", 1)], [("c/d/b", 1)]], [Entry("a", None)]),
        ([[("c/d", 0)], [("c/d/b", 1)]], [Entry("b", None)]), ([[]], None),
    ]  # fmt: skip
    for batches, expected in cases:
        asked = listed(monkeypatch, store, *batches)
        assert run(store.entries("c/d", few=True)) == expected
        assert asked == [{"prefix": "c/d"}]


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([], {}),
        ([[("d", 0)]], {}),
        ([[("d/a", 1), ("d/b", 2)], [("d/c", 3)]], {"a": 1, "b": 2, "c": 3}),
        ([[("d/0", 0), ("d/0/1", 5)]], {"0/1": 5}),  # the marker of a directory
        ([[("d/0", 0)], [("d/0/1", 5)]], {"0/1": 5}),
        ([[("d/0", 2), ("d/0/1", 5)]], {"0": 2, "0/1": 5}),
        ([[("d/0", 0), ("d/01", 5)]], {"0": 0, "01": 5}),
    ],
)
def test_the_keys_of_a_service(monkeypatch: Any, batches: Any, expected: Any) -> None:
    store = in_s3()
    asked = listed(monkeypatch, store, *batches)
    pages = run(store.take_keys("d", lambda *page: page))
    assert {k: n for keys, sizes in pages for k, n in zip(keys, sizes, strict=True)} == expected
    assert asked == [{"prefix": "d", "chunk_size": 1000}]
    listed(monkeypatch, store, [("a", 1), ("d/b", 2)])
    assert run(store.take_keys("", lambda *page: page)) == [(["a"], [1]), (["d/b"], [2])]
    assert run(made().take_keys("d", lambda *page: page)) is None


def test_places_and_abilities() -> None:
    store: Any = in_s3()
    place: Any
    place, key = store.where("k")
    is_tolerant, kind, server = place
    assert (is_tolerant, kind, key) == (False, "S3Store", "p/k")
    assert ("endpoint", "https://h:1") in server
    assert "word" not in str(server)
    assert "key1" not in str(server)
    store.forbidden_is_missing = True
    assert store.where("k")[0][0] is True
    assert store.where("k")[0][1:] == place[1:]
    plain = made()
    assert plain.where("k") == (id(plain), "k")
    assert (store.is_conditional, plain.is_conditional, plain.is_shared) == (True, False, False)
    assert (store.is_shared, str(store)) == (True, "s3://lab/p")

    async def awaited() -> Any: ...

    class Awaited:
        async def __call__(self) -> Any: ...

    class Called:
        def __call__(self) -> Any: ...

    for provider, expected in [
        (None, True),
        (awaited, False),
        (Awaited(), False),
        (Called(), True),
    ]:
        waits: Any = SimpleNamespace(store=SimpleNamespace(credential_provider=provider))
        assert can_wait(waits) is expected
    assert store.get_waiting is not None


# ------------------------------------------------------------------------------------- updates


def appended(old: bytes | None) -> bytes:
    return (old or b"") + b"!"


async def change(old: bytes | None) -> bytes:
    return appended(old)


def test_a_value_is_updated() -> None:
    store = made()
    for key, expected in [("c/k", DATA + b"!"), ("new", b"!")]:
        assert run(store.update(Update(key, appended))) == expected
        assert bytes(obstore.get(store.store, key).bytes()) == expected
    assert run(store.update(Update("c/k", lambda _: None))) is None
    assert run(store.get("c/k", PROTOTYPE)) is None
    assert run(store.update(Update("c/x", lambda _: None))) is None


def test_nothing_is_written_without_a_change(monkeypatch: Any) -> None:
    answers = Answers(monkeypatch, response(b"same"))
    assert run(made().update(Update("k", lambda old: old))) == b"same"
    assert [each[0] for each in answers.asked] == ["get"]


REFUSED = exceptions.PreconditionError("other")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(_: float) -> None: ...

    monkeypatch.setattr(object_store, "asyncio", SimpleNamespace(sleep=sleep))


@pytest.mark.parametrize("error", [REFUSED, exceptions.AlreadyExistsError("x")])
def test_an_update_starts_again_after_another_writer(monkeypatch: Any, error: Exception) -> None:
    answers = Answers(
        monkeypatch, response(b"a", e_tag="t1", version="v1"), error, response(b"b", e_tag="t2"),
        {},
    )  # fmt: skip
    assert run(update_object(in_s3(), "k", change)) == b"b!"
    (_, _, *first), (_, _, *second) = answers.asked[1], answers.asked[3]
    assert (first[0], dict(first[1:])["mode"]) == (b"a!", {"e_tag": "t1", "version": "v1"})
    assert (second[0], dict(second[1:])["mode"]) == (b"b!", {"e_tag": "t2"})
    named = dict(second[1:])["attributes"]["n5zarrupdates"]
    assert (len(named), named.isalnum()) == (32, True)


def test_a_new_object_is_created_and_a_list_of_updates_is_kept(monkeypatch: Any) -> None:
    answers = Answers(monkeypatch, FileNotFoundError(), {})
    run(update_object(in_s3(), "k", change))
    assert dict(answers.asked[1][3:])["mode"] == "create"
    known = " ".join(f"u{i}" for i in range(40))
    answers = Answers(monkeypatch, response(b"a", attributes={"n5zarrupdates": known}), {})
    run(update_object(in_s3(), "k", change))
    kept = dict(answers.asked[1][3:])["attributes"]["n5zarrupdates"].split()
    assert (len(kept), kept[:-1]) == (32, [f"u{i}" for i in range(9, 40)])
    Answers(monkeypatch, OSError("lost"))
    with pytest.raises(OSError, match="lost"):
        run(update_object(in_s3(), "k", change))
    answers = Answers(monkeypatch, response(b"a"), {})
    run(update_object(made(), "k", change))  # files have no metadata
    assert dict(answers.asked[1][3:])["attributes"] is None


def test_an_update_whose_answer_was_lost_is_not_repeated(monkeypatch: Any) -> None:
    answers = Answers(monkeypatch)
    monkeypatch.setattr(object_store, "uuid4", lambda: SimpleNamespace(hex="mine"))
    answers.answers = [
        response(b"a"), REFUSED, response(b"a!", attributes={"n5zarrupdates": "x mine"}),
    ]  # fmt: skip
    assert run(update_object(in_s3(), "k", change)) == b"a!"
    lost, other = exceptions.GenericError("lost"), exceptions.GenericError("other")
    answers.answers = [
        response(b"a"), lost, response(b"a!", attributes={"n5zarrupdates": "x mine"}),
    ]  # fmt: skip
    assert run(update_object(in_s3(), "k", change)) == b"a!"
    for last in (response(b"b", attributes={"n5zarrupdates": "mine2"}), other):
        answers.answers = [response(b"a"), lost, last]
        with pytest.raises(exceptions.GenericError, match="lost"):
            run(update_object(in_s3(), "k", change))


@pytest.mark.parametrize(
    "error",
    [exceptions.GenericError("501 Not Implemented"), exceptions.NotSupportedError("x"),
     NotImplementedError()],
)  # fmt: skip
def test_a_service_without_conditions(monkeypatch: Any, error: Exception) -> None:
    answers = Answers(monkeypatch, response(b"a"), error, {})
    assert run(update_object(in_s3(), "k", change)) == b"a!"
    assert answers.asked[-1] == ("put", "k", b"a!")


def test_an_object_that_is_refused_again_and_again(monkeypatch: Any) -> None:
    answers = Answers(monkeypatch, *[response(b"a"), REFUSED] * 60)
    with pytest.raises(N5Error, match=r"k: expected to update .* each of 50 attempts") as caught:
        run(update_object(in_s3(), "k", change))
    assert caught.value.kind == "changed"
    assert sum(each[0] == "put" for each in answers.asked) == 50
    many = [each for i in range(70) for each in (response(b"%d" % i), REFUSED)]
    Answers(monkeypatch, *many, response(b"z"), {})  # who waits for many others goes on
    assert run(update_object(in_s3(), "k", change)) == b"z!"
