"""A store that fails at its n-th call gives an error, and each unit is old or new.

``N5ZARR_STRESS=1`` does it at each call of each operation; else at a few.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Any, override

import pytest
from zarr.abc.buffer import Buffer
from zarr.abc.store import Store
from zarr.storage import MemoryStore, WrapperStore

from n5zarr.errors import N5Error
from tests.faults.operations import OPERATIONS, Case, Memory, kept
from tests.waiting import let_others_run

IS_LONG = bool(os.environ.get("N5ZARR_STRESS"))
N_SHORT = 6  # faults of each operation


class BrokenError(ConnectionError):
    """The error of the failing store."""


class Faults:
    """A counter of calls of all stores, with a fault at the n-th one."""

    def __init__(self) -> None:
        self.n_calls, self.at, self.kind = 0, 0, ""
        self.done = ""

    @contextmanager
    def armed(self, at: int, kind: str) -> Iterator[None]:
        """Count calls from now on, and let one of them fail; afterwards none."""
        self.n_calls, self.at, self.kind, self.done = 0, at, kind, ""
        yield
        self.at = 0

    def next(self, call: str) -> str:
        """Count a call; return the kind of fault, if it is due."""
        self.n_calls += 1
        if self.n_calls != self.at:
            return ""
        self.done = call
        if self.kind == "fails":
            raise BrokenError(call)
        return self.kind


class FaultyStore(WrapperStore[MemoryStore]):
    """A store that passes calls on, and fails at the chosen one."""

    def __init__(self, store: MemoryStore, faults: Faults, *, is_sync: bool) -> None:
        super().__init__(store)
        self.faults, self.is_sync = faults, is_sync

    @override
    def _with_store(self, store: MemoryStore) -> FaultyStore:
        return FaultyStore(store, self.faults, is_sync=self.is_sync)

    @property
    @override
    def _supports_sync_io(self) -> bool:
        return self.is_sync

    # reading

    @override
    async def get(self, key: str, *args: Any, **options: Any) -> Buffer | None:
        kind = self.faults.next(f"get {key}")
        if kind == "is late":
            await let_others_run()
        return self._cut(await self._store.get(key, *args, **options), kind)

    @override
    def get_sync(self, key: str, **options: Any) -> Buffer | None:
        kind = self.faults.next(f"get {key}")
        return self._cut(self._store.get_sync(key, **options), kind)

    @staticmethod
    def _cut(found: Buffer | None, kind: str) -> Buffer | None:
        if found is None:
            return None
        n = {"cuts": len(found) // 2, "cuts one byte": len(found) - 1, "cuts all": 0}.get(kind)
        return found if n is None else found[:n]

    @override
    async def exists(self, key: str) -> bool:
        self.faults.next(f"exists {key}")
        return await self._store.exists(key)

    @override
    async def getsize(self, key: str) -> int:
        self.faults.next(f"getsize {key}")
        return await self._store.getsize(key)

    @override
    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        self.faults.next(f"list_dir {prefix}")
        async for name in self._store.list_dir(prefix):
            yield name

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        self.faults.next(f"list_prefix {prefix}")
        for name in sorted([name async for name in self._store.list_prefix(prefix)]):
            yield name  # in the order of servers

    # writing

    @override
    async def set(self, key: str, value: Buffer) -> None:
        kind = self.faults.next(f"set {key}")
        await self._store.set(key, value)
        await self._end(kind, key, self._store.set(key, value))

    @override
    def set_sync(self, key: str, value: Buffer) -> None:
        kind = self.faults.next(f"set {key}")
        self._store.set_sync(key, value)
        if kind == "loses the response":
            raise BrokenError(key)

    @override
    async def delete(self, key: str) -> None:
        kind = self.faults.next(f"delete {key}")
        await self._store.delete(key)
        await self._end(kind, key, self._store.delete(key))

    @override
    def delete_sync(self, key: str) -> None:
        kind = self.faults.next(f"delete {key}")
        self._store.delete_sync(key)
        if kind == "loses the response":
            raise BrokenError(key)

    @staticmethod
    async def _end(kind: str, key: str, again: Any) -> None:
        if kind == "repeats":
            await again
        else:
            again.close()
        if kind == "loses the response":
            raise BrokenError(key)
        if kind == "is late":
            await let_others_run()

    @override
    async def delete_dir(self, prefix: str) -> None:
        await Store.delete_dir(self, prefix)  # key by key, through this store


def _is_hidden(kind: str, call: str, old: dict[str, bytes]) -> bool:
    """Return whether a difference is invisible: a group may have an empty document."""
    document = old.get(f"c.n5/{call.removeprefix('get ')}", b"dimensions")
    return kind == "cuts all" and call.endswith("attributes.json") and b"dimensions" not in document


def _parsed(objects: dict[str, bytes]) -> dict[str, Any]:
    """Parse documents: one that was read as empty may get its members in another order."""
    return {k: json.loads(v) if k.endswith(".json") else v for k, v in objects.items()}


KINDS = [
    "fails", "loses the response", "repeats", "is late", "cuts", "cuts one byte", "cuts all",
]  # fmt: skip


def place_of(faults: Faults, codecs: str, *, is_sync: bool) -> Memory:
    return Memory(partial(FaultyStore, faults=faults, is_sync=is_sync), codecs)


def check(case: Case[Memory], faults: Faults, kind: str, at: int) -> str:
    """Run an operation with a fault; return its result."""
    error, result = case.run(faults.armed(at, kind))
    where = f"{kind} at {at}, {faults.done}: {error!r}"
    if _is_hidden(kind, faults.done, case.old):
        return "hidden"
    if error is None:
        if case.operation.result not in (None, result):
            assert (result, kind) == (False, "cuts all"), where  # a finding of validate
            return "finding"
        assert _parsed(kept(case.place.objects())) == _parsed(kept(case.new)), where
        return "right"
    assert isinstance(error, BrokenError | N5Error), where
    # nobody opens what a conversion that failed has copied
    without = "out.n5" if kind.startswith("cuts") else "-"
    outcome = case.judged(error, result, where, without=without)
    case.check_repeated(where)
    return outcome


# zarr leaves coroutines where one of several requests fails
@pytest.mark.each_of(4)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*axes in .*attributes.json ignored:n5zarr.errors.N5Warning")
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_each_call_of_a_store_may_fail(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    outcomes = Counter[str]()
    ways = [(codecs, is_sync) for codecs in ("n5", "zarr") for is_sync in (False, True)]
    for codecs, is_sync in ways if IS_LONG else ways[len(name) % 4 :][:1]:
        faults = Faults()
        place = place_of(faults, codecs, is_sync=is_sync)
        case = Case.of(OPERATIONS[name], place, faults.armed(0, ""))
        cases = list(product(range(1, faults.n_calls + 1), KINDS))
        step = 1 if IS_LONG else max(1, len(cases) // N_SHORT)
        for at, kind in cases[:: step + (step % len(KINDS) == 0)]:
            outcomes[f"{kind}: {check(case, faults, kind, at)}"] += 1
    record_property("store", dict(outcomes))
    assert sum(outcomes.values()) >= N_SHORT // 2
