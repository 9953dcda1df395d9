"""Storage remembers answers during one call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from zarr.buffer import cpu
from zarr.storage import LoggingStore, MemoryStore

from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.requests import Get, List, Put, Remove, Request
from n5zarr.storage.zarr_store import ZarrStorage

if TYPE_CHECKING:
    from collections.abc import Callable

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
