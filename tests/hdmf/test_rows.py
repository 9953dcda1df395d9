"""What fails leaves a session as it was: rows that a column refuses, writes, interruptions."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from hdmf.build import ConstructError
from hdmf.common import AlignedDynamicTable, DynamicTable
from hdmf.data_utils import DataChunkIterator
from hdmf_zarr import NWBZarrIO
from zarr.storage import MemoryStore

from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError
from n5zarr.hdmf import NWBN5IO
from tests.hdmf.sessions import new, series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pynwb import NWBFile

pytestmark = [
    pytest.mark.filterwarnings("ignore:EnumData is experimental:UserWarning"),
    pytest.mark.filterwarnings("ignore:Consolidated metadata:zarr.errors.ZarrUserWarning"),
]

N_ROWS = 3


def small_session() -> NWBFile:
    """Make a session of one series and one table."""
    file = new(series("raw", np.arange(53.0)))
    plain = DynamicTable(name="plain", description="d")
    plain.add_column("text", "d")
    plain.add_column("vector", "d")
    plain.add_column("kind", "d", enum=["u", "v"])
    plain.add_column("number", "d")
    for i in range(N_ROWS):
        plain.add_row(number=i, text=f"t{i}", vector=[i, 7.0], kind="uv"[i % 2])
    file.add_scratch(plain)
    return file


def session() -> NWBFile:
    file = small_session()
    raw = file.acquisition["raw"]
    group = file.create_electrode_group("g", "d", "l", device=file.create_device("p"))
    deep = DynamicTable(name="deep", description="d")
    deep.add_column("words", "d", index=2)
    part = DynamicTable(name="part", description="d")
    part.add_column("b", "d")
    aligned = AlignedDynamicTable(name="aligned", description="d", category_tables=[part])
    aligned.add_column("a", "d")
    for i in range(N_ROWS):
        file.add_trial(start_time=float(i), stop_time=i + 1.0, timeseries=[raw])
        file.add_epoch(start_time=float(i), stop_time=i + 1.0)
        file.add_unit(spike_times=np.arange(i + 1.0), obs_intervals=[[0.0, 1.0]])
        file.add_electrode(location="x", group=group, imp=1.0)
        deep.add_row(words=[["a", "b"], ["c"] * i])
        aligned.add_row(a=i, part={"b": 10 * i})
    for table in (deep, aligned):
        file.add_scratch(table)
    return file


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "a.n5"
    with NWBN5IO(path, mode="w") as io:
        io.write(session())
    with NWBN5IO(path, mode="r+") as io:  # as any writing marks that no metadata are consolidated
        io.write(io.read())
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "a.n5"))


def contents(root: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(root): path.read_bytes() if path.is_file() else b""
        for path in root.rglob("*")
    }


def row(table: str, **values: Any) -> Callable[[NWBFile], None]:
    return lambda file: file.scratch[table].add_row(**values)


REFUSED: dict[str, tuple[Callable[[NWBFile], None], str]] = {
    "reference": (lambda file: file.add_trial(
            start_time=9.0, stop_time=9.5, timeseries=[file.acquisition["raw"]]
        ),
        "no attribute 'parent'"),
    "ragged": (lambda file: file.add_unit(spike_times=[1.0], obs_intervals=[[0.0, 1.0]]), "extend"),
    "ragged in ragged": (row("deep", words=[["a"], ["b"]]), "extend"),
    "the first": (row("plain", number=9, text=b"\xff", vector=[0, 1], kind="u"), "UTF-8"),
    "shape": (row("plain", number=9, text="t", vector=[1], kind="u"), "not compatible"),
    "a new term": (row("plain", number="q", text="t", vector=[0, 1], kind="z"), "invalid literal"),
    "the last": (row("plain", number="q", text="t", vector=[0, 1], kind="u"), "invalid literal"),
    "aligned": (row("aligned", a=9, part={"b": "q"}), "invalid literal"),
}  # fmt: skip


def test_rows_that_a_column_refuses_leave_nothing(path: Path, whole: Path) -> None:
    with NWBN5IO(path, mode="r+") as io:
        file = io.read()
        for name, (add, words) in REFUSED.items():
            with pytest.raises((ValueError, TypeError, AttributeError), match=words):
                add(file)
            counts = {len(file.trials), len(file.units), *map(len, file.scratch.values())}
            assert counts == {N_ROWS}, name
        io.write(file)
    assert contents(path) == contents(whole)


def test_rows_before_and_after_a_refused_one_stay(path: Path) -> None:
    with NWBN5IO(path, mode="r+") as io:
        table = io.read().scratch["plain"]
        for i in range(3, 7):
            table.add_row(number=i, text=f"t{i}", vector=[i, 7.0], kind="uv"[i % 2])
            with pytest.raises(ValueError, match="not compatible"):
                table.add_row(number=-1, text="wrong", vector=[], kind="u")
    with NWBN5IO(path, mode="r") as io:
        table = io.read().scratch["plain"]
        assert table.id[:].tolist() == table["number"][:].tolist() == [*range(7)]
        assert list(table["text"][:]) == [f"t{i}" for i in range(7)]
        np.testing.assert_array_equal(table["vector"][:], [[i, 7.0] for i in range(7)])
        assert list(table["kind"][:]) == [*"uvuvuvu"]


def test_an_interruption_between_two_columns_leaves_nothing(path: Path, whole: Path) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    values: dict[str, Any] = {"number": 3, "text": "t3", "vector": [3, 7.0], "kind": "v"}
    with NWBN5IO(path, mode="r+") as io:
        table = io.read().scratch["plain"]
        table["vector"].add_row = interrupt
        with pytest.raises(KeyboardInterrupt):
            table.add_row(**values)
        assert len(table) == N_ROWS + 1
    assert contents(path) == contents(whole)
    with NWBN5IO(path, mode="r+") as io:
        table = io.read().scratch["plain"]
        guarded, table["vector"].add_row = table["vector"].add_row, interrupt
        with pytest.raises(KeyboardInterrupt):
            table.add_row(**values | {"number": 99})
        table["vector"].add_row = guarded
        table.add_row(**values)
    with NWBN5IO(path, mode="r") as io:
        assert io.read().scratch["plain"]["number"][:].tolist() == [0, 1, 2, 3]


# ------------------------------------------------------------------------------ whole writes


def extend(file: NWBFile, data: Any) -> None:
    """Add a series, a table and a column, which change older documents, too."""
    file.add_acquisition(series("new", data))
    file.scratch["plain"].add_column("more", "d", data=[5, 6, 7])
    table = DynamicTable(name="fresh", description="d", id=[0, 1])
    table.add_column("c", "d", data=["x", "y"])
    file.add_scratch(table)
    file.add_stimulus(file.acquisition["raw"])  # a link


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_data_that_fail_leave_nothing(path: Path, whole: Path, error: type[BaseException]) -> None:
    def values() -> Iterator[np.ndarray]:
        yield from np.ones((7, 5))
        raise error("here")

    with NWBN5IO(path, mode="r+") as io:
        file = io.read()
        extend(file, DataChunkIterator(values(), buffer_size=2))
        with pytest.raises(error, match="here") as raised:
            io.write(file)
        assert "a.n5: nothing of this write is kept; open it again" in raised.value.__notes__[0]
        with pytest.raises(TypeError, match="parent"):  # it is closed
            io.write(file)
    assert contents(path) == contents(whole)


class Full(MemoryStore):
    """A store that takes so many values, then none, and later some again."""

    left = 10**9

    async def set(self, key: str, *args: Any, **kwargs: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError("no room")
        await super().set(key, *args, **kwargs)


def test_a_write_that_fails_anywhere_leaves_nothing(whole: Path) -> None:
    inner = Full()
    store = N5Store(inner)
    with NWBN5IO(store, mode="w") as io:
        io.write(small_session())
    before = {key: value.to_bytes() for key, value in inner._store_dict.items()}
    for n in (*range(1, 30, 4), *range(30, 200, 17)):
        with NWBN5IO(store, mode="r+") as io:
            file = io.read()
            extend(file, np.ones((7, 5)))
            inner.left = n
            with suppress(OSError):
                io.write(file)
                break
            inner.left = 10**9
        assert {key: value.to_bytes() for key, value in inner._store_dict.items()} == before
    assert n > 30
    with NWBN5IO(store, mode="r") as io:
        file = io.read()
        np.testing.assert_array_equal(file.acquisition["new"].data[:], np.ones((7, 5)))
        assert file.scratch["plain"]["more"][:].tolist() == [5, 6, 7]


def test_tables_that_hdmf_would_not_read_are_not_written(path: Path, whole: Path) -> None:
    with NWBN5IO(path, mode="r+") as io:
        file = io.read()
        with pytest.raises(ValueError, match="same number of rows"):
            file.add_epoch(start_time=9.0, stop_time=9.5, tags=["a"])  # a new column, without rows
        said = r"table 'epochs': expected .* one length.*'tags': 0"
        with pytest.raises(N5UnrepresentableError, match=said):
            io.write(file)
    assert contents(path) == contents(whole)
    table = DynamicTable(name="fresh", description="d")
    table.add_column("a", "d")
    table.add_column("e", "d", enum=["u"])
    with pytest.raises(TypeError, match="None is not allowed"):
        table.add_row(a=1, e=None)
    with NWBN5IO(path, mode="r+") as io:
        file = io.read()
        file.add_scratch(table)
        with pytest.raises(N5UnrepresentableError, match=r"table 'fresh'.*'a': 1, 'e': 0"):
            io.write(file)
    assert contents(path) == contents(whole)


def test_hdmf_zarr_leaves_part_of_a_row(path: Path) -> None:
    with NWBZarrIO(N5Store(path), mode="r+") as io:
        file = io.read()
        with pytest.raises(ValueError, match="extend"):
            file.add_unit(spike_times=[1.0], obs_intervals=[[0.0, 1.0]])
    assert zarr.open_array(N5Store(path), path="units/id", mode="r").shape == (N_ROWS + 1,)
    with (
        NWBN5IO(path, mode="r") as io,
        pytest.raises(ConstructError, match="number of ids") as raised,
    ):
        io.read()
    assert "cookbook" in raised.value.__notes__[0]
