"""n5zarr's and zarr's pipelines do the same in containers that began equal."""

from __future__ import annotations

import math
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from zarr.buffer import cpu
from zarr.errors import BaseZarrError
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5Error
from n5zarr.fast import kernel
from n5zarr.fast.default import default_pipeline_name
from tests.contract.test_pipeline import Selection, selections
from tests.property.test_written import get_codec, plain, same, scalars

# zarr's own warnings, of data types without a specification, of sharding, and of conversions
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:The data type .* does not have a Zarr V3 specification"
        ":zarr.errors.UnstableSpecificationWarning"
    ),
    pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec disables"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning"),
]
# each opens many stores; making a failure smaller would take minutes
FEWER = settings(max_examples=settings().max_examples // 8, phases=[Phase.generate])
PIPELINES = ("n5zarr.arrays.pipeline.N5CodecPipeline", default_pipeline_name())
SHAPE, CHUNKS = (7, 11, 5), (5, 4, 3)

# what n5zarr, zarr and numpy raise where they refuse
REFUSED = (
    N5Error,
    BaseZarrError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
)

NUMBERS = ["u1", "i1", "u2", "i4", "u8", "i8", "f4", "f8"]
OTHERS: list[Any] = ["bool", "f2", "c8", "c16", "M8[ns]", "m8[s]", "S5", "U3"]
OTHERS += [[("a", "<i4"), ("b", "<f8")], np.dtypes.StringDType()]


@pytest.fixture(scope="module", params=["kernel", "python"], autouse=True)
def _way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Choose whether the compiled kernel is used."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(kernel, "can_do", lambda dataset: False)
        elif not kernel.is_compiled():
            pytest.skip("no compiled kernel")
        yield


def outcome(work: Callable[[], Any]) -> Any:
    """Return the result of a function, or the class of its error."""
    try:
        return work()
    except REFUSED as err:
        return type(err)


def agree(ours: Any, zarrs: Any) -> bool:
    """Return whether two outcomes are the same; any two errors are."""
    if isinstance(ours, type) or isinstance(zarrs, type):
        return isinstance(ours, type) and isinstance(zarrs, type)
    return same(ours, zarrs)


class Twins:
    """Two containers with an array ``a`` each: one for n5zarr's pipeline, one for zarr's."""

    def __init__(
        self,
        folder: Path | None,
        how: dict[str, Any],
        make: Callable[[N5Store], Any],
        config: dict[str, Any],
    ) -> None:
        self.places: list[Any] = [
            MemoryStore() if folder is None else folder / name for name in ("ours.n5", "zarrs.n5")
        ]
        for place in self.places:
            make(N5Store(place, **how))
        self.how, self.config = how, config
        self.arrays = [self.opened(k, k) for k in range(2)]

    def opened(self, container: int, pipeline: int) -> Any:
        with zarr.config.set({**self.config, "codec_pipeline.path": PIPELINES[pipeline]}):
            store = N5Store(self.places[container], **self.how)
            return zarr.open_array(store, path="a", mode="r+")

    def both(self, work: Callable[[Any], Any], what: object) -> bool:
        """Do the same with both arrays; return whether it succeeded."""
        ours, zarrs = (outcome(partial(work, array)) for array in self.arrays)
        assert agree(ours, zarrs), (what, ours, zarrs)
        return not isinstance(ours, type)

    def blocks(self, container: int) -> dict[str, bytes]:
        """Return the files of the dataset, without its document."""
        place = self.places[container]
        if isinstance(place, MemoryStore):
            found = {key: value.to_bytes() for key, value in place._store_dict.items()}
        else:
            files = (path for path in place.rglob("*") if path.is_file())
            found = {p.relative_to(place).as_posix(): p.read_bytes() for p in files}
        return {k: v for k, v in found.items() if k.startswith("a/") and "attributes" not in k}

    def put(self, container: int, key: str, block: bytes | None) -> None:
        place = self.places[container]
        if isinstance(place, MemoryStore):
            place._store_dict.pop(key, None)
            if block is not None:
                place._store_dict[key] = cpu.Buffer.from_bytes(block)
        elif block is None:
            (place / key).unlink()
        else:
            (place / key).write_bytes(block)

    def check(self) -> None:
        """Check that both containers hold the same, by either pipeline."""
        assert self.blocks(0).keys() == self.blocks(1).keys()
        arrays = [self.opened(k, n) for k in range(2) for n in range(2)]
        found = [outcome(partial(array.__getitem__, ...)) for array in arrays]
        assert all(agree(a, b) for a, b in [found[:2], found[2:], found[1::2]]), found


def contents(data: st.DataObject, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Draw elements with few different values."""
    some = data.draw(st.lists(scalars(dtype), min_size=1, max_size=4))
    pool = np.empty(len(some), dtype)
    for k, scalar in enumerate(some):
        pool[k] = scalar
    seed = data.draw(st.integers(0, 9))
    return np.asarray(pool[np.random.default_rng(seed).integers(0, len(some), shape)])


def as_given(data: st.DataObject, values: np.ndarray, folder: Path) -> Any:
    """Return the same values in another kind of array."""
    how = data.draw(st.sampled_from(["C", "F", "strided", "read-only", "swapped", "memmap"]))
    if how == "F":
        return np.asfortranarray(values)
    if how == "strided" and values.ndim:
        wide = np.zeros((*values.shape[:-1], values.shape[-1] * 2), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2][::-1][::-1]
    if how == "read-only":
        values.flags.writeable = False
    if how == "swapped" and values.dtype.kind in "iufc":
        return values.astype(values.dtype.newbyteorder("S"))
    if how == "memmap" and values.size and values.dtype.kind in "iufc":
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(values.tobytes())
        return np.memmap(file.name, values.dtype, "r", shape=values.shape)
    return values


def value_for(
    data: st.DataObject, dtype: np.dtype[Any], shape: tuple[int, ...], fill: Any, folder: Path
) -> Any:
    """Draw a value to assign to a selection of some shape."""
    kind = data.draw(st.sampled_from(["array", "array", "scalar", "fill", "ones", "wide", "list"]))
    if kind == "scalar":
        return data.draw(scalars(dtype))
    if kind == "fill":
        return np.full(shape, fill, dtype)
    if kind == "ones":  # to be broadcast, or an error
        return contents(data, dtype, (1,) * data.draw(st.integers(0, len(shape))))
    values = contents(data, dtype, shape)
    if kind == "wide" and dtype.kind in "iuf":
        return np.arange(math.prod(shape), dtype="f8").reshape(shape)
    if kind == "list" and dtype.kind in "iufT":
        return values.tolist()
    return as_given(data, values, folder)


def assign(selection: Selection, value: Any, array: Any) -> int:
    getattr(array, selection.set)(selection.zarrs, value)
    return 0


def select(selection: Selection, array: Any) -> Any:
    return getattr(array, selection.get)(selection.zarrs)


def read_into(array: Any, order: Any, dtype: Any) -> np.ndarray:
    out = np.zeros(array.shape, dtype or array.dtype, order)
    array.get_basic_selection(out=cpu.NDBuffer.from_numpy_array(out))
    return out


def work_on(data: st.DataObject, twins: Twins, folder: Path, n: int = 5) -> None:
    """Read, write and compare, until an assignment fails, as its effect is not defined."""
    array = twins.arrays[0]
    dtype, fill = array.dtype, array.fill_value
    fill = np.zeros((), dtype)[()] if fill is None else fill
    for selection in list(selections(data, array.shape, array.chunks))[:n]:
        if selection.is_unique(array.shape):  # else the order of threads decides
            value = value_for(data, dtype, selection.shape, fill, folder)
            if not twins.both(partial(assign, selection, value), (selection[:3], value)):
                return
        twins.both(partial(select, selection), selection[:3])
    order = data.draw(st.sampled_from("CF"))
    other = data.draw(st.sampled_from([None, "f8", ">i4"])) if dtype.kind in "iuf" else None
    twins.both(lambda a: read_into(a, order, other), ("out", order, other))
    twins.check()


configs = st.fixed_dictionaries(
    {
        "array.order": st.sampled_from("CF"),
        "array.write_empty_chunks": st.booleans(),
        "array.read_missing_chunks": st.sampled_from([True, True, False]),
    }
)
PRESENTATIONS: dict[str, dict[str, Any]] = {
    f"{codecs} v{version} {order}": {
        "codecs": codecs, "zarr_format": version, "axis_order": order
    }
    for codecs, version, order in [
        ("zarr", 3, "C"), ("zarr", 3, "F"), ("zarr", 2, "C"), ("zarr", 2, "F"),
        ("portable", 3, "C"), ("n5", 3, "F"), ("n5", 2, "C"),
    ]
}  # fmt: skip


@pytest.mark.each_of(3)
@pytest.mark.parametrize("place", ["local", "memory"])
@pytest.mark.parametrize("zarr_format", [3, 2])
@given(data=st.data())
@FEWER
def test_other_elements_are_the_same_in_each_pipeline(
    tmp_path_factory: pytest.TempPathFactory, zarr_format: Any, place: str, data: st.DataObject
) -> None:
    """Arrays of text, structures, shards, filters and other orders agree in both pipelines."""
    folder = tmp_path_factory.mktemp("others")
    kinds = [*OTHERS, "u2", "f8"] + ([">u2", ">f4", ">M8[s]"] if zarr_format == 2 else [])
    wanted = data.draw(st.sampled_from(kinds))
    dtype = wanted if isinstance(wanted, np.dtype) else np.dtype(wanted)
    options: dict[str, Any] = {}
    if zarr_format == 2:
        options["order"] = data.draw(st.sampled_from("CF"))
        if dtype == "u2" and data.draw(st.booleans()):
            options["filters"] = [get_codec({"id": "delta", "dtype": "<u2"})]
    elif dtype.kind not in "TV" and data.draw(st.booleans()):
        options["shards"] = tuple(2 * n for n in CHUNKS)
    if data.draw(st.booleans()):
        options["compressors"] = None
    how = {"zarr_format": zarr_format}

    def make(store: N5Store) -> None:
        zarr.create_array(
            store, name="a", shape=SHAPE, chunks=CHUNKS, dtype=dtype, zarr_format=zarr_format,
            **options,
        )  # fmt: skip

    twins = Twins(None if place == "memory" else folder, how, make, data.draw(configs))
    work_on(data, twins, folder, 3)


def header(mode: int, *sizes: int) -> bytes:
    return struct.pack(f">HH{len(sizes)}I", mode, len(sizes), *sizes)


def odd_blocks(
    data: st.DataObject, extent: tuple[int, ...], full: tuple[int, ...], pack: Callable[..., bytes]
) -> bytes | None:
    """Return a block that is not ordinary for its place, in N5 order; None for none."""
    kind = data.draw(st.sampled_from([
        "removed", "empty file", "padded", "smaller", "larger", "over-long", "cut", "cut header",
        "varlength", "varlength with more", "object mode", "unknown mode", "other dimensions",
    ]))  # fmt: skip
    sizes = {
        "padded": full,
        "smaller": tuple(max(1, n - 1) for n in extent),
        "larger": tuple(n + 1 for n in full),
        "other dimensions": (math.prod(extent),),
    }.get(kind, extent)
    payload, n = pack(sizes), math.prod(sizes)
    usual = header(0, *sizes) + payload
    return {
        "removed": None,
        "empty file": b"",
        "over-long": usual + b"more",
        "cut": usual[:-3],
        "cut header": usual[:7],
        "varlength": header(1, *sizes) + struct.pack(">I", n) + payload,
        "varlength with more": header(1, *sizes) + struct.pack(">I", n + 1) + payload,
        "object mode": header(2) + payload,
        "unknown mode": header(7, *sizes) + payload,
    }.get(kind, usual)


@pytest.mark.each_of(2)
@pytest.mark.parametrize("place", ["local", "memory"])
@pytest.mark.parametrize("compression", ["raw", "gzip", "zstd"])
@given(data=st.data())
@FEWER
def test_numbers_and_blocks_that_are_not_ordinary(
    tmp_path_factory: pytest.TempPathFactory, compression: str, place: str, data: st.DataObject
) -> None:
    """Some blocks, or none, are odd before both pipelines read and write."""
    folder = tmp_path_factory.mktemp("odd")
    dtype = np.dtype(data.draw(st.sampled_from(NUMBERS)))
    fill = plain(np.asarray(data.draw(scalars(dtype) | st.just(dtype.type(0)))))[()]
    how = data.draw(st.sampled_from(list(PRESENTATIONS.values())))

    def make(store: N5Store) -> None:
        where = store.store if place == "memory" else store.root
        n5zarr.create_array(
            where, path="a", shape=SHAPE, chunks=CHUNKS, dtype=dtype, fill_value=fill,
            compression={"type": compression},
        )  # fmt: skip

    twins = Twins(None if place == "memory" else folder, how, make, data.draw(configs))
    shape = twins.arrays[0].shape
    values = np.arange(5, 5 + math.prod(SHAPE)).astype(dtype).reshape(shape)
    for array in twins.arrays:
        array[...] = values

    def pack(sizes: tuple[int, ...]) -> bytes:
        elements = np.arange(90, 90 + math.prod(sizes)).astype(dtype)
        block = n5zarr.encode_block(elements, compression={"type": compression})
        return block[len(header(0, elements.size)) :]

    for key in data.draw(st.lists(st.sampled_from(sorted(twins.blocks(0))), max_size=3)):
        position = tuple(map(int, key.split("/")[1:]))
        full, dims = CHUNKS[::-1], SHAPE[::-1]
        extent = tuple(min(b, n - i * b) for i, b, n in zip(position, full, dims, strict=True))
        block = odd_blocks(data, extent, full, pack)
        for k in range(2):
            if key in twins.blocks(k):
                twins.put(k, key, block)
    twins.both(lambda a: a[...], "all")
    work_on(data, twins, folder, 4)
