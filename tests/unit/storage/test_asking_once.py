"""Storage remembers answers during one call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest
from obstore.store import S3Store
from zarr.buffer import cpu
from zarr.storage import LoggingStore, MemoryStore, ObjectStore

from n5zarr.storage import asking_once as asking
from n5zarr.storage.asking_once import answers, asking_once
from n5zarr.storage.requests import Get, List, Put, Remove, Request
from n5zarr.storage.services import service_of
from n5zarr.storage.zarr_store import ZarrStorage

DOCUMENT = "g/attributes.json"


class Counting(MemoryStore):
    """A store in memory that counts its requests."""

    def __init__(self) -> None:
        super().__init__({DOCUMENT: cpu.Buffer.from_bytes(b"{}")})
        self.asked: list[str] = []

    async def get(self, key: str, *args: Any, **options: Any) -> Any:
        self.asked.append(key)
        return await super().get(key, *args, **options)

    async def list_dir(self, prefix: str) -> Any:
        self.asked.append(f"{prefix}/")
        async for name in super().list_dir(prefix):
            yield name


@pytest.fixture
def store() -> Counting:
    return Counting()


@pytest.fixture
def ask(store: Counting) -> Callable[..., list[Any]]:
    storage = ZarrStorage(store)

    def answers(*requests: Request) -> list[Any]:
        def steps() -> Any:
            return (yield requests)

        return list(asyncio.run(storage.run_async(steps(), print)))

    return answers


def test_each_document_and_listing_is_asked_for_once(store: Counting, ask: Any) -> None:
    with asking_once():
        first = ask(Get(DOCUMENT), List("g"))
        with asking_once():  # of a function that the call uses
            assert [bytes(ask(Get(DOCUMENT))[0]), *ask(List("g"))] == [b"{}", first[1]]
        assert ask(List("g", few=True)) == [first[1]]
        assert ask(Get("h/attributes.json")) == ask(Get("h/attributes.json")) == [None]
    assert store.asked == [DOCUMENT, "g/", "h/attributes.json"]
    ask(Get(DOCUMENT))
    assert store.asked.count(DOCUMENT) == 2  # after the call, others may have written


@pytest.mark.parametrize("way", ["with", "decorator"])
def test_no_answer_outlives_a_call_that_is_interrupted_before_its_end(
    store: Counting, ask: Any, way: str
) -> None:
    """As if a signal handler raised when the context was entered, and the error was kept."""
    kept, contexts = [], []

    def enter() -> None:
        context = asking_once()
        context.__enter__()
        contexts.append(context)
        ask(Get(DOCUMENT))
        ask(Get(DOCUMENT))
        raise KeyboardInterrupt

    def call() -> None:
        (asking_once()(enter) if way == "decorator" else enter)()

    try:
        call()
    except KeyboardInterrupt as err:
        kept.append(err)
    assert store.asked == [DOCUMENT]
    ask(Get(DOCUMENT))
    assert store.asked == [DOCUMENT] * 2
    with asking_once():
        ask(Get(DOCUMENT))
        ask(Get(DOCUMENT))
    assert store.asked == [DOCUMENT] * 3


def test_a_document_in_a_directory_that_is_not_listed_is_not_asked_for(
    store: Counting, ask: Any
) -> None:
    with asking_once():
        ask(List(""))
        assert ask(Get("x/attributes.json")) == [None]
        assert ask(Get("x/y/attributes.json"), Get("attributes.json")) == [None, None]
    assert store.asked == ["/", "x/y/attributes.json", "attributes.json"]


def test_a_write_forgets_what_was_known(store: Counting, ask: Any) -> None:
    with asking_once():
        ask(List(""), Get(DOCUMENT))
        ask(Put("n/attributes.json", b"{ }"))
        assert bytes(ask(Get("n/attributes.json"))[0]) == b"{ }"
        ask(Remove(DOCUMENT))
        assert ask(Get(DOCUMENT)) == [None]


def test_blocks_parts_and_settled_documents_are_always_asked_for(store: Counting, ask: Any) -> None:
    with asking_once():
        for request in (Get("g/0"), Get(DOCUMENT, settled=True), Get(DOCUMENT, part=(0, 1))):
            store.asked.clear()
            ask(request)
            ask(request)
            assert len(store.asked) == 2


def test_stores_are_not_confused(ask: Any) -> None:
    with asking_once():
        assert ask(Get(DOCUMENT)) != [None]
        other = ZarrStorage(LoggingStore(MemoryStore()))

        def steps() -> Any:
            return (yield [Get(DOCUMENT)])

        assert asyncio.run(other.run_async(steps(), print)) == [None]


def test_what_is_known_is_found_by_the_server_and_without_credentials() -> None:
    """Two stores of one server share it, whatever their folders; others do not."""
    options: Any = {
        "endpoint": "http://me:PASSW0RD@127.0.0.1:9", "region": "us-east-1",
        "access_key_id": "AKIAKEY", "secret_access_key": "SECR3T", "token": "T0KEN",
    }  # fmt: skip
    store = S3Store("lab", prefix="c.n5", **options)
    one = service_of(ObjectStore(store)).where("g/attributes.json")
    assert not any(word in repr(one) for word in ("PASSW0RD", "AKIAKEY", "SECR3T", "T0KEN"))
    folder = S3Store("lab", prefix="c.n5/g", **options)
    assert service_of(ObjectStore(folder)).where("attributes.json") == one
    for other in (
        S3Store("other", prefix="c.n5", **options),
        S3Store("lab", prefix="c.n5", **options, skip_signature=True),
        S3Store("lab", prefix="c.n5", **{**options, "endpoint": "http://127.0.0.1:10"}),
    ):
        assert service_of(ObjectStore(other)).where("g/attributes.json") != one


def test_the_oldest_answers_are_dropped(
    store: Counting, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("n5zarr.storage.asking_once._MOST", 1000)
    with asking_once():
        for name in "abcdefgh":
            ask(Get(f"{name}/attributes.json"))
        ask(Get("h/attributes.json"), Get("a/attributes.json"))
    assert store.asked.count("h/attributes.json") == 1
    assert store.asked.count("a/attributes.json") == 2


@pytest.mark.skipif(
    vars(asking)["os"].name == "nt", reason="Windows has no fork and replaces no open file"
)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_forked_within_a_call_does_not_wait_for_its_parent() -> None:
    """A thread of the parent may be looking into the answers."""
    with asking_once():
        known: Any = answers()
        with known._lock:
            child = os.fork()
            if not child:
                os._exit(7 if known.find("k") is None else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_call_that_is_thrown_away_ends_in_any_context() -> None:
    call: Any = asking_once()
    copy_context().run(call.__enter__)
    with asking_once():
        known = answers()
        call.gen.close()  # as the garbage collector does
        assert answers() is known is not None
    assert answers() is None
