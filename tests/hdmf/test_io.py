"""`NWBN5IO` opens by path: links between containers, several writers, modes, errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import obstore.store
import pytest
import zarr
from hdmf_zarr import NWBZarrIO, ZarrDataIO
from pynwb import NWBHDF5IO, NWBFile, get_manager
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore

from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.hdmf import N5IO, NWBN5IO, differences
from n5zarr.hdmf.backend import N5PathStore
from tests.hdmf.sessions import Buffers, Pids, new, series

# of plain Zarr
pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata:zarr.errors.ZarrUserWarning")

RAMP = np.arange(7 * 5).reshape(7, 5)


def write(io: type, path: Path, file: NWBFile) -> None:
    with io(str(path), mode="w") as writer:
        writer.write(file)


@pytest.mark.parametrize(("io", "name"), [(NWBN5IO, "a.n5"), (NWBZarrIO, "a.zarr")])
def test_links_into_other_containers_are_followed(tmp_path: Path, io: Any, name: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    write(io, folder / name, new(series("t", RAMP)))
    manager = get_manager()
    with io(str(folder / name), mode="r", manager=manager) as first:
        given = first.read().acquisition["t"]
        file = new(series("u", given.data))
        file.add_stimulus(given)
        with NWBN5IO(folder / "b.n5", mode="w", manager=manager) as writer:
            writer.write(file, link_data=True)
    links = zarr.open_group(N5Store(folder / "b.n5"), mode="r")["acquisition/u"].attrs["_LINKS"]
    assert links == [{"name": "data", "source": f"../{name}", "path": "/acquisition/t/data"}]
    folder.rename(tmp_path / "there")  # links are relative
    with NWBN5IO(tmp_path / "there" / "b.n5", mode="r") as reader:
        found = reader.read()
        np.testing.assert_array_equal(found.acquisition["u"].data[:], RAMP)
        np.testing.assert_array_equal(found.stimulus["t"].data[:], RAMP)
    shutil.rmtree(tmp_path / "there" / name)
    with (
        NWBN5IO(tmp_path / "there" / "b.n5", mode="r") as reader,
        pytest.raises(FileNotFoundError, match=name) as err,
    ):
        reader.read()
    assert err.value.__notes__ == [f"linked from {tmp_path}/there/b.n5, as '../{name}'"]


def test_links_of_remote_containers_are_refused() -> None:
    store = N5Store(MemoryStore())
    with NWBN5IO(store, mode="w") as writer:
        writer.write(new(series("t", RAMP)))
    with NWBN5IO(store, mode="r") as reader, NWBN5IO(store, mode="r") as again:
        np.testing.assert_array_equal(reader.read().acquisition["t"].data[:], RAMP)
        assert reader.source == str(store)
        assert list(differences(reader, again)) == []
        with pytest.raises(N5UnsupportedError, match=r"link to '\.\./a\.n5': .* local ones"):
            reader.resolve_ref({"source": "../a.n5", "path": "/acquisition/t"})


@pytest.mark.long
@pytest.mark.each_of(2)
@pytest.mark.parametrize(
    ("context", "one_by_one"),
    [("fork", True), ("spawn", False)],  # processes for each array, or for all
    ids=["fork", "spawn"],
)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_several_processes_write(tmp_path: Path, context: str, one_by_one: bool) -> None:
    data = np.random.default_rng(3).integers(0, 9999, (503, 7), "int32")
    shapes: dict[str, Any] = {"chunk_shape": (20, 7), "buffer_shape": (100, 7)}
    sharded = ZarrDataIO(Buffers(data, **shapes), chunks=(10, 7), shards=(100, 7))
    written = {"plain": Buffers(data, **shapes), "sharded": sharded, "pids": Pids(data, **shapes)}
    with NWBN5IO(tmp_path / "a.n5", mode="w") as io:
        io.write(
            new(*(series(name, values) for name, values in written.items())), number_of_jobs=2,
            multiprocessing_context=context, exhaust_dci=one_by_one,
        )  # fmt: skip
    with NWBN5IO(tmp_path / "a.n5", mode="r") as io:
        file = io.read()
        for name in ("plain", "sharded"):
            np.testing.assert_array_equal(file.acquisition[name].data[:], data)
        assert file.acquisition["sharded"].data.shards == (100, 7)
        pids = set(np.unique(file.acquisition["pids"].data[:]))
        assert 1 <= len(pids) <= 2
        assert os.getpid() not in pids


STORES: dict[str, Callable[[], Any]] = {
    "memory": MemoryStore,
    "fsspec": lambda: FsspecStore.from_url(f"memory://{uuid.uuid4().hex}"),
    "obstore": lambda: ObjectStore(obstore.store.MemoryStore()),
}


@pytest.mark.parametrize("kind", STORES)
def test_one_process_writes_what_others_do_not_share(kind: str) -> None:
    store = N5Store(STORES[kind]())
    with NWBN5IO(store, mode="w") as io:
        parts = Buffers(RAMP, chunk_shape=(2, 5), buffer_shape=(4, 5))
        with pytest.warns(N5Warning, match="written by one process"):
            io.write(new(series("t", parts)), number_of_jobs=2)
    with NWBN5IO(store, mode="r") as io:
        np.testing.assert_array_equal(io.read().acquisition["t"].data[:], RAMP)


class Puts(MemoryStore):
    """A counter of the keys that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: Counter[str] = Counter()

    async def set(self, key: str, *args: Any, **kwargs: Any) -> None:
        self.puts[key] += 1
        await super().set(key, *args, **kwargs)


def test_attributes_are_written_at_once() -> None:
    inner = Puts()
    written = new(series("t", RAMP))
    with NWBN5IO(N5Store(inner), mode="w") as io:
        io.write(written)
    group, array = "acquisition/t/attributes.json", "acquisition/t/data/attributes.json"
    assert inner.puts[group] == 2  # as it is made, then with what hdmf says of it
    assert inner.puts[array] == 3  # and its data type
    attributes = zarr.open_group(N5Store(inner), mode="r")["acquisition/t"].attrs
    assert set(attributes) >= {"neurodata_type", "namespace", "object_id", "comments"}


def test_a_file_of_hdf5_is_exported(tmp_path: Path) -> None:
    write(NWBHDF5IO, tmp_path / "a.nwb", new(series("t", RAMP)))
    with NWBHDF5IO(tmp_path / "a.nwb", mode="r") as source:
        with NWBN5IO(tmp_path / "a.n5", mode="w") as io:
            io.export(src_io=source, write_args={"link_data": False})
        with NWBN5IO(tmp_path / "a.n5", mode="r") as copy:
            assert list(differences(source, copy)) == []


def test_modes_that_create(tmp_path: Path) -> None:
    for mode in ("w-", "x", "a", "w"):
        path = tmp_path / f"{mode}.n5"
        with NWBN5IO(path, mode=mode) as io:
            io.write(new(series("t", RAMP)))
        assert NWBN5IO.read_nwb(path).acquisition["t"].data.shape == (7, 5)
    for mode in ("w-", "x"):
        with pytest.raises(FileExistsError, match=r"w\.n5 exists; mode 'w' replaces it"):
            NWBN5IO(tmp_path / "w.n5", mode=mode)
    with pytest.raises(FileNotFoundError):
        NWBN5IO(tmp_path / "none.n5", mode="r+", manager=get_manager())
    assert not (tmp_path / "none.n5").exists()
    with NWBN5IO(tmp_path / "w.n5", mode="r") as io:
        data = io.read().acquisition["t"].data
        with pytest.raises(ValueError, match="read-only"):
            data[0, 0] = 1


def test_a_path_of_another_format_is_refused(tmp_path: Path) -> None:
    write(NWBHDF5IO, tmp_path / "a.nwb", new())
    write(NWBZarrIO, tmp_path / "a.zarr", new())
    for mode in ("r", "w", "w-", "x"):
        said = r"a\.nwb: .* got a file; use .*HDF5IO"
        with pytest.raises(N5UnrepresentableError, match=said) as err:
            NWBN5IO(tmp_path / "a.nwb", mode=mode, force_overwrite=mode != "w")
        assert ("force_overwrite" in str(err.value)) == (mode == "w")
    with pytest.raises(N5UnrepresentableError, match="storage_options"):
        NWBN5IO(tmp_path / "a.nwb", mode="w", force_overwrite=True, storage_options={"x": 1})
    with pytest.raises(N5UnrepresentableError, match=r"mode: expected one of .* got 'q'"):
        NWBN5IO(tmp_path / "a.n5", mode="q")
    for mode in ("r", "r-", "r+"):
        with pytest.raises(FileNotFoundError, match=r"none\.n5 does not exist"):
            NWBN5IO(tmp_path / "none.n5", mode=mode)
    with ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("attributes.json", "{}")
    with pytest.raises(N5UnrepresentableError, match=r"got a file; use zip://::.*a\.zip"):
        NWBN5IO(tmp_path / "a.zip", mode="r")
    assert NWBHDF5IO.can_read(tmp_path / "a.nwb")
    for zarr_itself in (tmp_path / "a.zarr", LocalStore(tmp_path / "a.zarr")):
        for mode in ("r", "r+", "a"):
            said = r"a\.zarr: .* hierarchy; use .*ZarrIO"
            with pytest.raises(N5UnrepresentableError, match=said):
                NWBN5IO(zarr_itself, mode=mode)
    with NWBN5IO(tmp_path / "a.nwb", mode="w", force_overwrite=True) as io:
        io.write(new(series("t", RAMP)))
    assert NWBN5IO.can_read(tmp_path / "a.nwb")


def test_data_that_are_not_nwb(tmp_path: Path) -> None:
    from hdmf.common import DynamicTable, VectorData  # noqa: PLC0415 - for this test only
    from hdmf.common import get_manager as get_common  # noqa: PLC0415

    table = DynamicTable(
        name="root", description="d", columns=[VectorData(name="c", description="x", data=[1, 5])]
    )
    with N5IO(tmp_path / "t.n5", mode="w", manager=get_common()) as io:
        io.write(table)
    assert N5IO.can_read(tmp_path / "t.n5")
    assert not NWBN5IO.can_read(tmp_path / "t.n5")
    with N5IO(tmp_path / "t.n5", mode="r", manager=get_common()) as io:
        assert io.read()["c"].data[:].tolist() == [1, 5]


def test_without_the_extra_the_way_out_is_named() -> None:
    script = "import sys; sys.modules['pynwb'] = None; import n5zarr; import n5zarr.hdmf"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "N5MissingDependencyError" in done.stderr
    assert "pip install 'n5zarr[hdmf]'" in done.stderr


def test_a_store_that_is_a_path(tmp_path: Path) -> None:
    write(NWBN5IO, tmp_path / "a.n5", new(series("t", RAMP)))
    store = N5PathStore(tmp_path / "a.n5")
    assert os.fspath(store) == str((tmp_path / "a.n5").resolve())
    assert isinstance(store, os.PathLike)
    assert isinstance(store.with_read_only(read_only=True), N5PathStore)
    for io in (NWBN5IO, NWBZarrIO):
        with io(path=store, mode="r") as reader:
            np.testing.assert_array_equal(reader.read().acquisition["t"].data[:], RAMP)
    with pytest.raises(AttributeError, match="local path"):
        os.fspath(N5PathStore(MemoryStore()))
