"""List operations of every kind on a small container, and permitted results of failures.

The container is two places: ``c.n5``, which :func:`prepare` makes, and ``out.n5``, where a
conversion goes. What they hold is compared as keys and bytes: each block and document is a unit,
which is old or new. `tests.fuzz.oracle` decodes the blocks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import zarr
from zarr.buffer import cpu
from zarr.errors import ContainsArrayError, ContainsGroupError
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5Error
from n5zarr.storage.files import is_unfinished
from tests.fuzz.oracle import read_dataset
from tests.waiting import PATIENCE, wait_until

SHAPE, BLOCKS = (5, 7, 11), (3, 4, 11)  # 2 x 2 x 1 blocks
SMALL, SMALL_BLOCKS = (5, 7), (3, 7)
_DOCUMENT = "attributes.json"
_MARKER = "n5zarr-incomplete"


class Place(Protocol):
    """The location of the two containers."""

    def open(self, name: str = "c.n5") -> Any:
        """Open one of the containers again, for all functions that take a location."""

    def objects(self) -> dict[str, bytes]:
        """Return all files."""

    def fill(self, objects: dict[str, bytes]) -> None:
        """Replace all files by these."""


class Memory:
    """Two containers in memory, in stores that may be wrapped."""

    def __init__(self, wrap: Callable[[MemoryStore], Any], codecs: Any = "n5") -> None:
        self.wrap, self.codecs = wrap, codecs
        self.stores = {name: MemoryStore() for name in ("c.n5", "out.n5")}

    def open(self, name: str = "c.n5") -> N5Store:
        return N5Store(self.wrap(self.stores[name]), codecs=self.codecs)

    def objects(self) -> dict[str, bytes]:
        stores = self.stores.items()
        return {f"{name}/{k}": v.to_bytes() for name, s in stores for k, v in s._store_dict.items()}

    def fill(self, objects: dict[str, bytes]) -> None:
        for name, store in self.stores.items():
            own = {k: v for k, v in objects.items() if k.startswith(f"{name}/")}
            store._store_dict.clear()
            store._store_dict.update(
                {k.removeprefix(f"{name}/"): cpu.Buffer.from_bytes(v) for k, v in own.items()}
            )


def values(seed: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 250, shape, "u2")


A, B = values(1), values(2, SMALL).astype("u1")


def prepare(place: Place) -> None:
    n5zarr.create_array(
        place.open(), path="a/s0", data=A, chunks=BLOCKS, compression=None,
        attributes={"x": 1, "list": [1, 2, 3]},
    )  # fmt: skip
    n5zarr.create_array(place.open(), path="g/b", data=B, chunks=SMALL_BLOCKS, compression="gzip")
    n5zarr.set_attribute(place.open(), "g", "y", 2)


@dataclass(frozen=True)
class Operation:
    """One call of a user."""

    run: Callable[[Place], Any]  # does it at a place; what it returns is its result
    # the datasets that are others afterwards; None for one that is gone
    makes: Mapping[str, np.ndarray | None]
    result: Any = None  # what it returns, if it only reads
    # how to repeat it after an error, if not in the same way
    again: Callable[[Place], Any] | None = None
    # beginnings of keys whose elements it gives up: there, a block may be gone before the document
    # says so
    drops: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()  # keys of documents that it writes in several steps
    creates: bool = False  # whether it makes a new node where there is none


def array_of(place: Place) -> Any:
    return n5zarr.open_array(place.open(), "r+", path="a/s0")


def _with(box: Any, value: Any) -> np.ndarray:
    changed = A.copy()
    changed[box] = value
    return changed


def _resized(shape: tuple[int, ...]) -> np.ndarray:
    common = tuple(slice(0, min(pair)) for pair in zip(SHAPE, shape, strict=True))
    changed = np.zeros(shape, A.dtype)
    changed[common] = A[common]
    return changed


def _write(box: Any, value: Any) -> Operation:
    def run(place: Place) -> None:
        array_of(place)[box] = value

    return Operation(run, {"c.n5/a/s0": _with(box, value)})


def _create(run: Callable[..., Any], **makes: np.ndarray) -> Operation:
    def again(place: Place) -> None:
        try:
            run(place)
        except ContainsArrayError:  # its document has been written
            for path, data in makes.items():
                n5zarr.open_array(place.open(), "r+", path=path)[...] = data
        except ContainsGroupError:  # its directory has been made
            run(place, overwrite=True)

    made = {f"c.n5/{path}": data for path, data in makes.items()}
    return Operation(run, made, again=again, creates=True)


def _new(place: Place, path: str, **options: Any) -> Any:
    return n5zarr.create_array(place.open(), path=path, chunks=SMALL_BLOCKS, **options)


def _zarr_group(place: Place, **options: Any) -> Any:
    return zarr.create_group(place.open(), path="new/group", attributes={"k": 1}, **options)


def _zarr_array(place: Place, **options: Any) -> Any:
    return zarr.create_array(
        place.open(), name="z", shape=SMALL, chunks=SMALL_BLOCKS, dtype="u1",
        attributes={"k": 1}, **options,
    )  # fmt: skip


def _delete(place: Place) -> None:
    root: Any = zarr.open_group(place.open(), mode="r+")
    if "g" in root:
        del root["g"]


def _mean(data: np.ndarray) -> np.ndarray:
    """Return the mean of some elements, fewer at the ends of axes; halves to the even number."""
    starts = [np.arange(0, n, step) for n, step in zip(data.shape, (1, 2, 2), strict=True)]
    total, count = data.astype("i8"), np.ones(data.shape, "i8")
    for axis, start in enumerate(starts):
        total = np.add.reduceat(total, start, axis)
        count = np.add.reduceat(count, start, axis)
    mean, rest = np.divmod(2 * total + count, 2 * count)
    is_tie_to_even = (rest == 0) & (mean % 2 == 1)
    return np.asarray(mean - is_tie_to_even).astype(data.dtype)


def _pyramid(place: Place, **options: Any) -> None:
    n5zarr.build_pyramid(
        place.open(), "a", levels=1, factors=(1, 2, 2), method="mean", n_workers=1, **options
    )


def _pyramid_again(place: Place) -> None:
    try:
        _pyramid(place, resume=True)
    except n5zarr.N5Error as err:
        if err.kind != "option":
            raise
        _pyramid(place, overwrite=True)


def _convert(place: Place, **options: Any) -> None:
    n5zarr.convert(place.open(), place.open("out.n5"), to="n5", n_workers=1, verify=True, **options)


def _convert_again(place: Place) -> None:
    try:
        _convert(place, resume=True)
    except n5zarr.N5Error:  # nothing was begun, or what is there is found to be damaged
        _convert(place, overwrite=True)


def _members(place: Place) -> list[str]:
    root: Any = zarr.open_group(place.open(), mode="r")
    return sorted(name for name, _ in root.members(max_depth=None))


def _remove_item(place: Place) -> None:
    n5zarr.remove_attribute(place.open(), "a/s0", "list[0]")


def _remove_item_again(place: Place) -> None:
    if n5zarr.get_attribute(place.open(), "a/s0", "list") == [1, 2, 3]:
        _remove_item(place)


PART = np.s_[1:4, 2:6, 3:9]
OPERATIONS: dict[str, Operation] = {
    "create a group": _create(_zarr_group),
    "create an array": _create(
        partial(_new, path="n/a", shape=SMALL, dtype="u1", attributes={"k": 1}),
        **{"n/a": np.zeros(SMALL, "u1")},
    ),
    "create an array with elements": _create(
        partial(_new, path="n/a", data=B + 1), **{"n/a": B + 1}
    ),
    "create an array by zarr": _create(_zarr_array, z=np.zeros(SMALL, "u1")),
    "replace an array": Operation(
        lambda place: _new(place, "a/s0", data=B + 1, overwrite=True), {"c.n5/a/s0": B + 1}
    ),
    "write a block": _write(np.s_[:3, :4], 7),
    "write all blocks": _write(np.s_[...], values(3)),
    "write parts of blocks": _write(PART, values(4)[PART]),
    "write zeros": _write(np.s_[...], 0),
    "read": Operation(lambda place: array_of(place)[...].tolist(), {}, result=A.tolist()),
    "read a part": Operation(
        lambda place: array_of(place)[PART].tolist(), {}, result=A[PART].tolist()
    ),
    "grow": Operation(
        lambda place: array_of(place).resize((5, 7, 13)), {"c.n5/a/s0": _resized((5, 7, 13))}
    ),
    "shrink": Operation(
        lambda place: array_of(place).resize((2, 7, 11)),
        {"c.n5/a/s0": _resized((2, 7, 11))},
        drops=("c.n5/a/s0/0/0/1", "c.n5/a/s0/0/1/1"),
    ),
    "set attributes": Operation(
        lambda place: array_of(place).update_attributes({"x": 2, "w": 3}), {}
    ),
    "delete an attribute": Operation(
        lambda place: n5zarr.remove_attribute(place.open(), "a/s0", "x"), {}
    ),
    "append to an attribute": Operation(
        lambda place: n5zarr.set_attribute(place.open(), "a/s0", "list[3]", 4), {}
    ),
    "remove an item of an attribute": Operation(_remove_item, {}, again=_remove_item_again),
    "delete a node": Operation(_delete, {"c.n5/g/b": None}),
    "list": Operation(_members, {}, result=["a", "a/s0", "g", "g/b"]),
    "validate": Operation(lambda place: n5zarr.validate(place.open()).ok, {}, result=True),
    "convert": Operation(
        _convert, {"out.n5/a/s0": A, "out.n5/g/b": B}, again=_convert_again
    ),
    "build a pyramid": Operation(
        _pyramid, {"c.n5/a/s1": _mean(A)}, again=_pyramid_again, steps=("c.n5/a/attributes.json",)
    ),
}  # fmt: skip


# ------------------------------------------------------------------ what there is


def elements(objects: Mapping[str, bytes], dataset: str) -> np.ndarray:
    """Decode a dataset without code of n5zarr."""
    document = json.loads(objects[f"{dataset}/{_DOCUMENT}"])
    return read_dataset(document, lambda at: objects.get("/".join([dataset, *map(str, at)])))


def until_quiet(is_done: Callable[[], bool] = lambda: True) -> None:
    """Wait for tasks that zarr leaves on its event loop when an operation has failed.

    ``is_done`` tells whether threads that tasks have left behind seem to have ended, too; it is
    waited for 10 seconds at most.
    """
    sync(_end_of_other_tasks())
    with suppress(AssertionError):  # the caller looks at what there is, and tells what is wrong
        wait_until(is_done, patience=10)


async def _end_of_other_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        assert not (await asyncio.wait(others, timeout=PATIENCE))[1]


def check_repeated(operation: Operation, place: Place) -> None:
    """Check that an operation that failed succeeds when it is done again."""
    result = (operation.again or operation.run)(place)
    assert operation.result is None or result == operation.result


def check_model(operation: Operation, objects: Mapping[str, bytes]) -> None:
    """Check that an operation has made the elements that numpy makes."""
    expected = {"c.n5/a/s0": A, "c.n5/g/b": B, **operation.makes}
    for path, data in expected.items():
        if data is None:  # nothing is left of it; but it may be a group now
            below = tuple(other for other in expected if other.startswith(f"{path}/"))
            left = {k for k in objects if k.startswith(f"{path}/") and not k.startswith(below)}
            assert left <= ({f"{path}/{_DOCUMENT}"} if below else set()), path
        else:
            np.testing.assert_array_equal(elements(objects, path), data, err_msg=path)


def kept(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the relevant files: no files of killed writers, and no marker of a running job.

    A group without attributes needs no document.
    """
    return {
        key: data
        for key, data in objects.items()
        if not any(map(is_unfinished, key.split("/")))
        and not key.rpartition("/")[2].startswith(_MARKER)
        and not (key.endswith(_DOCUMENT) and data == b"{}")
    }


def faults_of(
    operation: Operation,
    old: Mapping[str, bytes],
    new: Mapping[str, bytes],
    now: Mapping[str, bytes],
) -> list[str]:
    """Return the units that are neither old nor new.

    A block of a dataset whose document goes, or is made anew, may be gone. It may not be gone, nor
    be one of the new dataset, while the old document is there.
    """
    wrong = []
    for key in sorted({*old, *new, *now}):
        allowed = _allowed(key, old, new, now)
        if key.startswith(operation.drops or ("-",)):
            allowed.append(None)
        if key in operation.steps and _is_between(
            *(json.loads(objects.get(key, b"{}")) for objects in (old, new, now))
        ):
            continue
        if now.get(key) not in allowed:
            wrong.append(f"{key}: {_short(now.get(key))} of {list(map(_short, allowed))}")
    return wrong


def _allowed(
    key: str, old: Mapping[str, bytes], new: Mapping[str, bytes], now: Mapping[str, bytes]
) -> list[bytes | None]:
    """Return the values that a unit may have; some depend on the document above it."""
    before, after = old.get(key), new.get(key)
    document = next((d for d in _documents_above(key) if d in old or d in new), None)
    if document is None or _kind(old.get(document)) == _kind(new.get(document)):
        return [before, after]
    if key == document:  # removed, perhaps before it is made anew
        return [before, after, None]
    match now.get(document):
        case None:
            return [before, after, None]
        case found if found == old.get(document):
            return [before]
        case found if _kind(found) == _kind(b'{"a": 1}'):  # a group: nobody reads its blocks
            return [before, after, None]
        case _:
            return [after, None]


def _documents_above(key: str) -> list[str]:
    """Return the documents that describe a block: that of the nearest dataset first."""
    parts = key.split("/")[:-1]
    return ["/".join([*parts[:n], _DOCUMENT]) for n in range(len(parts), 0, -1)]


def _kind(document: bytes | None) -> Any:
    """Return the members that identify a dataset; None for no document."""
    parsed = json.loads(document or b"null")
    return parsed and {name: parsed.get(name) for name in ("blockSize", "dataType", "compression")}


def _is_between(old: Any, new: Any, now: Any) -> bool:
    """Return whether a value is old, new, or the beginning of the new one."""
    if now in (old, new):
        return True
    if isinstance(now, dict) and isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        return all(_is_between(before.get(name), new.get(name), now[name]) for name in now)
    if isinstance(now, list) and isinstance(new, list):
        pairs = zip(now, new, strict=False)
        return len(now) <= len(new) and all(_is_between(None, after, each) for each, after in pairs)
    return False


def _short(data: bytes | None) -> str:
    return "nothing" if data is None else f"{len(data)} bytes, {hash(data) % 10**6:06d}"


# ------------------------------------------------------------------ a fault


@dataclass
class Case[Where: Place]:
    """An operation at a place, and what there is before it and after it."""

    operation: Operation
    place: Where
    old: dict[str, bytes]
    new: dict[str, bytes]

    @classmethod
    def of(
        cls, operation: Operation, place: Where, watch: AbstractContextManager[Any] | None = None
    ) -> Case[Where]:
        """Run an operation without faults, within a context that may watch it."""
        prepare(place)
        old = place.objects()
        with watch or nullcontext():
            result = operation.run(place)
        assert operation.result in (None, result)
        new = place.objects()
        check_model(operation, new)
        assert faults_of(operation, kept(old), kept(new), kept(new)) == []
        return cls(operation, place, old, new)

    def run(
        self, fault: AbstractContextManager[Any], is_done: Callable[[], bool] = lambda: True
    ) -> tuple[Exception | None, Any]:
        """Run the operation within a fault; return its error and its result."""
        self.place.fill(self.old)
        with fault:
            try:
                return None, self.operation.run(self.place)
            except (OSError, N5Error) as err:
                until_quiet(is_done)
                return err, None

    def judged(
        self, error: Exception | None, result: Any, where: str, *, without: str = "-"
    ) -> str:
        """Check what there is; return a short outcome: "right", a wrong result, or the error.

        After an error, keys that begin with ``without`` do not matter.
        """
        now, new = kept(self.place.objects()), kept(self.new)
        if error is not None:
            now = {key: data for key, data in now.items() if not key.startswith(without)}
            assert faults_of(self.operation, kept(self.old), new, now) == [], where
            return type(error).__name__
        if self.operation.result not in (None, result):
            return str(result)
        assert now == new, where
        return "right"

    def check_repeated(self, where: str) -> None:
        """Check that the operation succeeds when it is done again."""
        check_repeated(self.operation, self.place)
        assert kept(self.place.objects()) == kept(self.new), where
