"""`n5zarr.hdmf.convert`, `differences` and `n5zarr nwb convert` keep everything."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorstore
import zarr
from hdmf.backends.hdf5 import H5DataIO
from hdmf.common import DynamicTable
from hdmf_zarr import NWBZarrIO, ZarrDataIO
from pynwb import NWBHDF5IO, NWBFile, get_manager
from pynwb.image import ImageSeries
from rich.console import Console

from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.errors import (
    N5AttributesError,
    N5Error,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
)
from n5zarr.hdmf import NWBN5IO, convert, differences
from n5zarr.hdmf.chunking import Meter, _Slabs
from n5zarr.hdmf.file_contents import slab_shape, slabs
from tests.command import CliRunner
from tests.hdmf.sessions import new, series, session, written
from tests.programs import Programs

pytestmark = [
    pytest.mark.filterwarnings("ignore:Consolidated metadata:zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings("ignore:.*readers will search for '..avi':n5zarr.N5Warning"),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("nwb") / "a.nwb", session())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one series, for tests in which the content does not matter."""
    return written(tmp_path_factory.mktemp("small") / "a.nwb", new(series("t", np.arange(7))))


@pytest.fixture(scope="module")
def n5(source: Path) -> Path:
    target = source.with_suffix(".n5")
    convert(source, target)
    return target


@pytest.fixture(scope="module")
def back(n5: Path) -> Path:
    """Convert the N5 container to HDF5 again."""
    target = n5.with_name("back.nwb")
    convert(n5, target)
    return target


@pytest.fixture(scope="module")
def small_n5(small: Path) -> Path:
    target = small.with_suffix(".n5")
    convert(small, target)
    return target


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs("import n5zarr.hdmf\nfrom n5zarr.cli import app as cli") as found:
        yield found


def test_tensorstore_opens_all_datasets_of_numbers(n5: Path) -> None:
    """pynwb writes ``resolution`` and ``unit`` as single values."""
    numbers = [f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)]
    singles = 0
    for path in n5.rglob("attributes.json"):
        document = json.loads(path.read_bytes())
        recorded = document.get("zarr", {}).get("attributes", {})
        singles += len({"resolution", "units", "axes"} & recorded.keys())
        if document.get("dataType") in (*numbers, "float32", "float64"):
            spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path.parent)}}
            tensorstore.open(spec, read=True).result().read().result()
    assert singles > 5


@pytest.mark.long
def test_by_way_of_hdf5_every_document_is_the_same(n5: Path, back: Path, tmp_path: Path) -> None:
    convert(back, tmp_path / "b.n5", verify=False)
    first, second = documents(n5), documents(tmp_path / "b.n5")
    assert len(first) > 150
    # a group without attributes may have none
    assert all(path.startswith("specifications/") for path in first.keys() ^ second.keys())
    for path in first.keys() & second.keys():
        assert first[path] == second[path]
    ours, theirs = arrays(n5), arrays(tmp_path / "b.n5")
    assert len(ours) > 100
    assert ours.keys() == theirs.keys()
    for path, array in ours.items():
        assert theirs[path].dtype == array.dtype
        np.testing.assert_array_equal(theirs[path][...], array[...])


def arrays(container: Path) -> dict[str, Any]:
    members = zarr.open_group(N5Store(container), mode="r").members(max_depth=None)
    return {name: node for name, node in members if isinstance(node, zarr.Array)}


def documents(container: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for path in container.rglob("attributes.json"):
        document = json.loads(path.read_bytes())
        document.pop("compression", None)  # may be another one
        document.get("zarr", {}).pop("codecs", None)
        found[path.relative_to(container).as_posix()] = document
    return found


# ---------------------------------------------------------------------- differences


def set_attribute(root: Any, path: str, name: str, value: Any) -> None:
    root[path].attrs[name] = value


def set_value(root: Any, path: str, index: Any, value: Any) -> None:
    root[path][index] = value


def replace(root: Any, path: str, make: Callable[[Any], Any]) -> None:
    array = root[path]
    attributes = dict(array.attrs)
    group, _, name = path.rpartition("/")
    values = np.asarray(make(array[...]))
    made = root[group].create_array(name, data=values, overwrite=True)
    made.attrs.update(attributes | {"_DTYPE": values.dtype.name})


def link(root: Any, path: str, target: str) -> None:
    links = root[path].attrs["_LINKS"]
    root[path].attrs["_LINKS"] = [links[0] | {"path": target}, *links[1:]]


def copy_what_is_linked(root: Any, path: str) -> None:
    root[path].attrs["_LINKS"] = []
    plane = root["general/optophysiology/plane"].attrs
    root[path].create_group("imaging_plane").attrs.update(plane)


def drop_specification(root: Any, path: str) -> None:
    (version,) = root[path]
    del root[path][version]["nwb.base"]


def remove(root: Any, path: str) -> None:
    del root[path]


NAN = np.frombuffer(b"\x01\x7e", "<f2")[0]
# path of a node, what is done to it, and what is said after the path
MUTATIONS: dict[str, tuple[str, Callable[..., None], tuple[Any, ...], str]] = {
    "attribute": ("acquisition/raw/data", set_attribute, ("unit", "mV"),
        "@unit: attribute: 'volts', then 'mV'"),
    "type of attribute": ("acquisition/clock/timestamps", set_attribute, ("interval", 1.0),
        "@interval: attribute: 1, then 1.0"),
    "new attribute": ("acquisition/raw", set_attribute, ("more", 1), "@more: only in the second"),
    "integer": ("acquisition/raw/data", set_value, ((1008, 2), 30_000),
        ": 1 values differ, the first at (1008, 2): "),
    "NaN": ("acquisition/half/data", set_value, (3, NAN), ": 1 values differ, the first at (3,): "),
    "sign of zero": ("acquisition/half/data", set_value, (5, 0.0),
        ": 1 values differ, the first at (5,): "),
    "bool": ("intervals/trials/correct", replace, (lambda v: v.astype("u1"),),
        ": data type: '|b1', then '|u1'"),
    "data type": ("acquisition/of_int32/data", replace, (lambda v: v.astype("i8"),),
        ": data type: '<i4', then '<i8'"),
    "shape": ("acquisition/of_int32/data", replace, (lambda v: v[:-1],),
        ": shape: (11, 2), then (10, 2)"),
    "text": ("general/extracellular_ephys/electrodes/label", set_value, (4, "e"),
        ": 1 values differ, the first at (4,)"),
    "scalar text": ("identifier", set_value, ((), "another"),
        ": value: 'a session', then 'another'"),
    "scalar": ("acquisition/raw/starting_time", set_value, ((), 0.5), ": value: "),
    "compound": ("processing/ophys/ImageSegmentation/cells/pixel_mask", set_value,
        (5, (2, 4, 0.25)), ".weight: 1 values differ, "),
    "reference": ("general/extracellular_ephys/electrodes/group", set_value,
        (0, "/acquisition/raw"), ": 1 values differ, the first at (0,)"),
    "link": ("acquisition/frames", link, ("/general/devices/probe",),
        "/imaging_plane: link: /general/optophysiology/plane, then /general"),
    "link that became a copy": ("acquisition/frames", copy_what_is_linked, (),
        "/imaging_plane: link: /general/optophysiology/plane, then None"),
    "specification": ("specifications/core", drop_specification, (), "/"),
    "text for a reference": ("acquisition/raw/electrodes", set_attribute, ("table", "/general/x"),
        "@table: attribute: /general/extracellular_ephys/electrodes, th"),
    "group": ("acquisition/half", remove, (), ": only in the first"),
}  # fmt: skip


# those that change the same node come one after the other
OTHERS = ["sign of zero", "shape", "link"]
ROUNDS = [[name for name in MUTATIONS if name not in (*OTHERS, "group")], OTHERS, ["group"]]


@pytest.mark.long
@pytest.mark.parametrize("mutations", ROUNDS, ids=["most", "others", "group"])
def test_every_difference_is_found(
    source: Path, n5: Path, tmp_path: Path, mutations: list[str]
) -> None:
    shutil.copytree(n5, tmp_path / "m.n5")
    root = zarr.open_group(N5Store(tmp_path / "m.n5"), mode="r+")
    for path, function, given, _ in map(MUTATIONS.__getitem__, mutations):
        function(root, path, *given)
    with NWBHDF5IO(source, mode="r") as first, NWBN5IO(tmp_path / "m.n5", mode="r") as second:
        found = list(differences(first, second))
    assert len(found) == len(mutations), found
    for path, _, _, said in map(MUTATIONS.__getitem__, mutations):
        # each has one, and no other has the same
        assert sum(line.startswith(f"/{path}{said}") for line in found) == 1, (path, found)


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((7,), None), ((300_000_007,), None), ((1009, 211, 307), (101, 3, 5)),
        ((3, 100_003, 10_007), None), ((5, 3), (50, 30)), ((2, 2**20, 2**10), (1, 2**20, 2**9)),
    ],
)  # fmt: skip
def test_parts_cover_an_array_once(shape: tuple[int, ...], chunks: tuple[int, ...] | None) -> None:
    data: Any = zarr.create_array({}, shape=shape, chunks=chunks or "auto", dtype="u2")
    if chunks is None:
        data = np.broadcast_to(np.zeros((), "u2"), shape)
    boxes = list(slabs(data))
    sizes = [math.prod(part.stop - part.start for part in box) for box in boxes]
    assert sum(sizes) == math.prod(shape)
    assert len({tuple(part.start for part in box) for box in boxes}) == len(boxes)
    limit = max(2**24, math.prod(chunks or ()) * 2)
    assert max(sizes) * 2 <= limit
    assert len(boxes) == 1 or max(sizes) * 2 > 2**22  # few parts: each costs a call
    for step, n, chunk in zip(slab_shape(data), shape, chunks or shape, strict=True):
        assert step == n or step % (chunk if chunks else 1) == 0


# ---------------------------------------------------------------------- convert


@pytest.mark.long
def test_chunks_and_progress(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    big = random.integers(0, 99, (300_007, 11), "int16")
    options = {"compression": "gzip", "chunks": (10_007, 11), "shuffle": True}
    given = {"chunked": H5DataIO(big, **options), "whole": big + 1, "small": big[:7]}
    written(tmp_path / "a.nwb", new(*(series(name, data) for name, data in given.items())))
    told: list[tuple[str, int, int]] = []
    convert(tmp_path / "a.nwb", tmp_path / "a.n5", progress=lambda *stage: told.append(stage))
    for stage, total in (("convert", 2 * big.nbytes), ("verify", 2 * big.nbytes + 7 * 11 * 2)):
        counts = [done for at, done, of in told if at == stage and of == total]
        assert counts[0] == 0
        assert counts[-1] == total
        assert counts == sorted(counts)
    document = json.loads((tmp_path / "a.n5/acquisition/chunked/data/attributes.json").read_bytes())
    assert document["blockSize"] == [11, 10_007]
    assert document["compression"] == {"type": "gzip", "level": 4, "useZlib": False}
    convert(tmp_path / "a.n5", tmp_path / "sub" / "b.nwb")
    with h5py.File(tmp_path / "sub" / "b.nwb") as file:
        found = file["acquisition/chunked/data"]
        assert (found.chunks, found.compression_opts) == ((10_007, 11), 4)
        assert (found.compression, found.shuffle) == ("gzip", True)
        np.testing.assert_array_equal(found[...], big)
        np.testing.assert_array_equal(file["acquisition/whole/data"][...], big + 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.n5", "a.nwb", "sub"]


@pytest.mark.long
def test_chunks_codecs_and_fill_values_stay(tmp_path: Path) -> None:
    values = np.arange(5 * 3, dtype="i4").reshape(5, 3)
    whole = H5DataIO(values, chunks=(1024, 2), maxshape=(None, 3), fillvalue=-1, compression="gzip")
    level = H5DataIO(values, chunks=(5, 3), compression="gzip", compression_opts=9)
    plain = H5DataIO(values, chunks=(2, 3), maxshape=(None, 3))
    given = {"whole": whole, "level": level, "plain": plain, "contiguous": values}
    written(tmp_path / "a.nwb", new(*(series(name, data) for name, data in given.items())))
    with h5py.File(tmp_path / "a.nwb", "r+") as file:
        late = file["acquisition/contiguous"].create_dataset("x", (5, 3), "f4", fillvalue=np.nan)
        late[2:] = 3
    convert(tmp_path / "a.nwb", tmp_path / "a.n5")
    convert(tmp_path / "a.n5", tmp_path / "b.nwb")
    with h5py.File(tmp_path / "b.nwb") as file:
        found = {name: file[f"acquisition/{name}/data"] for name in given}
        assert found["whole"].chunks == (1024, 2)
        assert found["whole"].maxshape == (None, 3)
        assert found["whole"].fillvalue == -1
        assert (found["level"].chunks, found["level"].compression_opts) == ((5, 3), 9)
        assert (found["plain"].chunks, found["plain"].maxshape) == ((2, 3), (None, 3))
        assert found["contiguous"].chunks is None
        assert np.isnan(file["acquisition/contiguous/x"].fillvalue)
        np.testing.assert_array_equal(file["acquisition/contiguous/x"][1:3, 0], [np.nan, 3])
    for path in ("a.n5", "c.n5"):
        if path == "c.n5":
            convert(tmp_path / "b.nwb", tmp_path / path)
        node: Any = zarr.open_group(N5Store(tmp_path / path), mode="r")["acquisition/whole/data"]
        assert (node.chunks, node.fill_value) == ((1024, 2), -1)


@pytest.mark.long
def test_shards_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # of more than one slab, but small
    monkeypatch.setattr("n5zarr.hdmf.file_contents._SLAB", 1 << 20)
    values = np.arange(93_757 * 3, dtype="i4").reshape(-1, 3)
    options = {"chunks": (6_250, 4), "shards": (12_500, 8), "fillvalue": 7}
    with NWBZarrIO(str(tmp_path / "a.zarr"), mode="w") as io:
        io.write(new(series("t", ZarrDataIO(values, **options))))
    convert(tmp_path / "a.zarr", tmp_path / "a.n5")
    convert(tmp_path / "a.n5", tmp_path / "b.zarr")
    for opened in (N5Store(tmp_path / "a.n5"), tmp_path / "b.zarr"):
        node: Any = zarr.open_group(opened, mode="r")["acquisition/t/data"]
        assert (node.chunks, node.shards, node.fill_value) == ((6_250, 4), (12_500, 8), 7)
        np.testing.assert_array_equal(node[...], values)


@pytest.mark.long
def test_memory_does_not_grow_with_the_data(tmp_path: Path, programs: Programs) -> None:
    written(tmp_path / "a.nwb", new(series("t", np.zeros((1, 64), "i4"))))
    script = """
import resource
import h5py, numpy as np
from n5zarr.hdmf import convert
with h5py.File("a.nwb", "r+") as file:
    attributes = dict(file["acquisition/t/data"].attrs)
    del file["acquisition/t/data"]
    data = file["acquisition/t"].create_dataset("data", (1_000_000, 64), "i4")
    data.attrs.update(attributes)
    for start in range(0, 1_000_000, 10_000):
        data[start : start + 10_000] = np.arange(start, start + 10_000)[:, None] * np.arange(64)
    assert data.nbytes == 256_000_000
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for source, target in (("a.nwb", "a.n5"), ("a.n5", "b.nwb")):
    convert(source, target)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    done = programs.run(script, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 200e6


def test_an_existing_target_is_kept(
    small: Path, small_n5: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    target = tmp_path / "a.n5"
    shutil.copytree(small_n5, target)
    before = documents(target)
    with pytest.raises(FileExistsError, match=r"a\.n5 exists"):
        convert(small, target)
    written(tmp_path / "other.nwb", new())

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NWBN5IO, "write_builder", interrupted)
        with pytest.raises(KeyboardInterrupt):
            convert(tmp_path / "other.nwb", target, overwrite=True)
    with monkeypatch.context() as patch:
        patch.setattr("n5zarr.hdmf.conversion.differences", interrupted)
        with pytest.raises(KeyboardInterrupt):
            convert(tmp_path / "other.nwb", target, overwrite=True)
    assert documents(target) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.n5", "other.nwb"]
    convert(tmp_path / "other.nwb", target, overwrite=True)
    assert NWBN5IO.read_nwb(target).identifier == "i"


def test_no_other_folder_is_replaced(small: Path, tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "a.avi").write_text("a film")
    zarr.create_group(tmp_path / "films" / "inner")
    with pytest.raises(N5UnrepresentableError, match="films: expected an NWB file"):
        convert(small, tmp_path / "films", to="n5", overwrite=True)
    assert (tmp_path / "films" / "a.avi").read_text() == "a film"
    zarr.create_group(tmp_path / "group.zarr").create_group("images")
    zarr.create_array(tmp_path / "array.zarr", shape=(1,), dtype="u1")
    for name in ("group.zarr", "array.zarr"):
        with pytest.raises(N5UnrepresentableError, match=f"{name}: expected an NWB file"):
            convert(small, tmp_path / name, overwrite=True)
        assert (tmp_path / name / "zarr.json").exists()
        shutil.rmtree(tmp_path / name)
    (tmp_path / "empty.n5").mkdir()
    convert(small, tmp_path / "empty.n5", overwrite=True, verify=False)
    assert NWBN5IO.can_read(tmp_path / "empty.n5")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty.n5", "films"]


def test_no_folder_is_replaced_that_holds_the_source(
    small: Path, small_n5: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "b.n5"
    shutil.copytree(small_n5, folder)
    shutil.copy(small, folder / "a.nwb")
    for target in (folder, folder / ".", tmp_path, tmp_path / "c" / "..", "/"):
        with pytest.raises(N5UnrepresentableError, match=r"expected a location beside .*a\.nwb"):
            convert(folder / "a.nwb", target, to="n5", overwrite=True)
    for target in (folder / "c.zarr", folder / "d" / "c.zarr"):
        with pytest.raises(N5UnrepresentableError, match=r"expected a location beside .*b\.n5"):
            convert(folder, target)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.n5"]
    # it may be rewritten itself
    convert(folder, folder, overwrite=True)
    assert not (folder / "a.nwb").exists()


def test_links_and_home_are_followed(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "a.n5").symlink_to(tmp_path / "disk" / "a.n5")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    convert(small, tmp_path / "a.n5", verify=False)
    assert NWBN5IO.can_read(tmp_path / "disk" / "a.n5")
    assert (tmp_path / "a.n5").is_symlink()
    convert("file://" + str(tmp_path / "a.n5"), "~/b.n5", verify=False)
    assert [p.name for p in (tmp_path / "home").iterdir()] == ["b.n5"]
    for url in ("s3://bucket/a.n5", "memory://a.n5"):
        with pytest.raises(N5UnsupportedError, match="expected a local path"):
            convert(small, url)


def test_a_target_that_appears_in_the_meantime_is_kept(small: Path, tmp_path: Path) -> None:
    def appear(stage: str, *_: Any) -> None:
        (tmp_path / "a.n5").mkdir(exist_ok=True)
        (tmp_path / "a.n5" / "precious").touch()

    with pytest.raises(FileExistsError, match=r"a\.n5 exists"):
        convert(small, tmp_path / "a.n5", progress=appear)
    assert [p.name for p in tmp_path.iterdir()] == ["a.n5"]
    assert (tmp_path / "a.n5" / "precious").exists()


@pytest.mark.long
def test_everything_stays_as_it_is(tmp_path: Path) -> None:
    """Data that the schema does not know, and data of another version of it, are copied."""
    written(tmp_path / "a.nwb", new(series("t", np.arange(5)), series("u", np.arange(3))))
    with h5py.File(tmp_path / "a.nwb", "r+") as file:
        file.attrs["nwb_version"] = "2.5.0"
        file["acquisition/t"].attrs["of the lab"] = np.array([1, 2], "i2")
        file["acquisition/t/data"].attrs["nothing"] = np.nan
        file["acquisition/t/more"] = np.arange(4, dtype=">f4")
        file["extra/inner/texts"] = np.array(["a", "é"], h5py.string_dtype())
        file["extra/inner"].attrs["of"] = file["acquisition/t"].ref
        file["extra/refs"] = np.array([file["acquisition/t"].ref] * 2, h5py.ref_dtype)
        del file["acquisition/t"].attrs["comments"]
        del file["session_start_time"]
        file["session_start_time"] = "2020-01-02T03:04:05.123Z"
        core = file["specifications/core"]
        (version,) = core
        core.move(version, "2.5.0")
    for source, target in (("a.nwb", "a.n5"), ("a.n5", "b.nwb"), ("b.nwb", "b.zarr")):
        convert(tmp_path / source, tmp_path / target)
    with h5py.File(tmp_path / "b.nwb") as file:
        assert file.attrs["nwb_version"] == "2.5.0"
        assert file["acquisition/t"].attrs["of the lab"].tolist() == [1, 2]
        assert np.isnan(file["acquisition/t/data"].attrs["nothing"])
        assert file["acquisition/t/more"][:].tolist() == [0, 1, 2, 3]
        assert file["acquisition/t/more"].dtype == "f4"
        assert file["extra/inner/texts"].asstr()[:].tolist() == ["a", "é"]
        assert file[file["extra/inner"].attrs["of"]].name == "/acquisition/t"
        assert file[file["extra/refs"][1]].name == "/acquisition/t"
        assert "comments" not in file["acquisition/t"].attrs
        assert file["session_start_time"][()] == b"2020-01-02T03:04:05.123Z"
        assert list(file["specifications/core"]) == ["2.5.0"]
        assert file[file.attrs[".specloc"]].name == "/specifications"
    with NWBN5IO(tmp_path / "a.n5", mode="r") as io:
        assert io.read().acquisition["t"].data[:].tolist() == [0, 1, 2, 3, 4]


OLD = Path(__file__).parents[1] / "data" / "pynwb" / "back_compat-4.2.0.tar.xz"


@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore:No cached namespaces found:UserWarning",  # in files of old versions of pynwb
    "ignore:Schema conflict:UserWarning",  # an extension that the core has overtaken
    "ignore:.*defines a different specification:UserWarning",  # likewise
    "ignore:.*external_file. in the folder:n5zarr.N5Warning",  # that convert writes
)
def test_files_of_every_version(tmp_path: Path) -> None:
    """Files of pynwb's own tests are converted; all of them with N5ZARR_STRESS=1."""
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    files = sorted((tmp_path / "tests" / "back_compat").iterdir())
    assert len(files) == 27
    for file in files if os.environ.get("N5ZARR_STRESS") else files[1::5]:
        convert(file, tmp_path / f"{file.stem}.n5")
        # equal to the first file, it is equal to the one between
        convert(tmp_path / f"{file.stem}.n5", tmp_path / f"{file.stem}.nwb", verify=False)
        with (
            NWBHDF5IO(file, mode="r") as first,
            NWBHDF5IO(tmp_path / f"{file.stem}.nwb", mode="r") as second,
        ):
            assert list(differences(first, second)) == []


def lost(source: Path, target: Path) -> list[str]:
    """Return the objects that h5py finds in only one of two HDF5 files."""
    with h5py.File(source) as first, h5py.File(target) as second:
        return [*_lost("", first, second)]


def _lost(path: str, a: Any, b: Any) -> Iterator[str]:
    """Compare without hdmf, which may lose the same objects in both."""
    yield from (f"{path}@{name}" for name in set(a.attrs) ^ set(b.attrs))
    for name in set(a.attrs) & set(b.attrs):
        if not _same(a, b, a.attrs[name], b.attrs[name]):
            yield f"{path}@{name}: {a.attrs[name]!r}, {b.attrs[name]!r}"
    if not isinstance(a, h5py.Dataset):
        yield from (f"{path}/{name}" for name in set(a) ^ set(b))
        for name in set(a) & set(b):
            yield from _lost_child(f"{path}/{name}", a, b, name)
    elif a.shape != b.shape or not _same(a, b, a[()], b[()]):
        yield f"{path}: {a[()]!r}, {b[()]!r}"


def _lost_child(path: str, a: h5py.Group, b: h5py.Group, name: str) -> Iterator[str]:
    links = a.get(name, getlink=True), b.get(name, getlink=True)
    if isinstance(links[0], h5py.HardLink):
        yield from _lost(path, a[name], b[name])
    elif links[0].path != links[1].path:
        yield f"{path}: {links[0].path}, {links[1].path}"


def _same(in_a: Any, in_b: Any, a: Any, b: Any) -> bool:
    if isinstance(a, h5py.Reference):
        return bool(in_a.file[a].name == in_b.file[b].name)
    if isinstance(a, np.void) and a.dtype.names:
        return a.dtype.names == b.dtype.names and all(
            _same(in_a, in_b, a[n], b[n]) for n in a.dtype.names
        )
    if isinstance(a, np.ndarray) and a.dtype.kind in "OV":
        return a.shape == b.shape and all(
            _same(in_a, in_b, x, y) for x, y in zip(a.flat, b.flat, strict=True)
        )
    if isinstance(a, bytes | str) or (isinstance(a, np.ndarray) and a.dtype.kind == "S"):
        text = [np.char.decode(np.asarray(v, "S")) if not isinstance(v, str) else v for v in (a, b)]
        return bool(np.all(text[0] == text[1]))
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")


@pytest.mark.long
def test_nothing_is_lost_that_hdmf_reads(source: Path, back: Path) -> None:
    assert lost(source, back) == []


def make_unusual(g: h5py.Group) -> None:
    """Create, in a group with ``data``, objects that hdmf reads in a special way."""
    for name, value in {
        "text of fixed length": np.array([b"ab", b"c"]),
        "text in two axes": [["a", "b"], ["c", "d"]],
        "compound with fixed text": np.array(
            [(b"ab", 1, b"c")], dtype=[("t", "S5"), ("i", "i4"), ("u", "S2")]
        ),
        "nested compound": np.array(
            [(1, (2, 3.5))], dtype=[("i", "i4"), ("n", [("j", "i2"), ("f", "f8")])]
        ),
        "compound with a dot": np.array([(1, 2.5)], dtype=[("a.b", "i4"), ("f", "f8")]),
        "references and text": np.array(
            [(1, g.ref, "é"), (2, g["data"].ref, "")],
            dtype=[("i", "i4"), ("r", h5py.ref_dtype), ("t", h5py.string_dtype())],
        ),
    }.items():
        g.create_dataset(name, data=value)
    g.create_dataset("empty text", (0, 3), h5py.string_dtype())
    g.create_dataset("no references", (0,), h5py.ref_dtype)
    g.attrs["text"] = [["a", "b"], ["c", "d"]]
    g.attrs["integers and floats"] = [1, 2.5]
    g["link"] = h5py.SoftLink("/general")
    g.file["link in the root"] = h5py.SoftLink("/acquisition/t/data")


@pytest.mark.long
def test_unusual_content_is_converted_there_and_back(tmp_path: Path) -> None:
    written(tmp_path / "a.nwb", new(series("t", np.arange(5))))
    with h5py.File(tmp_path / "a.nwb", "r+") as file:
        make_unusual(file["acquisition/t"])
    convert(tmp_path / "a.nwb", tmp_path / "a.n5")
    convert(tmp_path / "a.n5", tmp_path / "back.nwb")
    assert lost(tmp_path / "a.nwb", tmp_path / "back.nwb") == []


def vary(group: h5py.Group) -> None:
    group.create_dataset("x", (2,), h5py.vlen_dtype("i4"))[0] = [1, 2]


def dataset(**options: Any) -> Callable[[h5py.Group], object]:
    return lambda group: group.create_dataset("x", **options)


def attribute(value: Any, dtype: Any = None) -> Callable[[h5py.Group], object]:
    return lambda group: group.attrs.create("x", value, dtype=dtype)


def links(**targets: str) -> Callable[[h5py.Group], object]:
    return lambda group: group.update({k: h5py.SoftLink(v) for k, v in targets.items()})


def chain(group: h5py.Group) -> None:
    group.file["y"], group["x"] = h5py.SoftLink("/acquisition/t/data"), h5py.SoftLink("/y")


def move_specifications(group: h5py.Group) -> None:
    group.file.move("specifications", "general/specs")
    group.file.attrs[".specloc"] = group.file["general/specs"].ref


ENUM = h5py.enum_dtype({"a": 0, "b": 1})
REFUSED: dict[str, tuple[Callable[[h5py.Group], object], str]] = {
    "lengths": (vary, "/acquisition/t/x: arrays of different lengths"),
    "two links": (links(x="/general", y="/general"),
        "/acquisition/t/y: link to /general, called like the target of /acquisition/t/x"),
    "second name": (lambda g: g.update(x=g["data"]),
        "/acquisition/t/x: a second name of /acquisition/t/data"),
    "circle": (lambda g: g.update(x=g.file["acquisition"]),
        "/acquisition/t/x: a second name of /acquisition"),
    "dangling link": (links(x="/none"), "/acquisition/t/x: link to /none, which does not exist"),
    "chain": (chain, "/acquisition/t/x: link to /y, which is a link itself"),
    "region": (lambda g: dataset(data=[g["data"].regionref[1:2]], dtype=h5py.regionref_dtype)(g),
        "/acquisition/t/x: references to regions"),
    "region in an attribute": (lambda g: attribute(g["data"].regionref[1:2])(g),
        "/acquisition/t@x: references to regions"),
    "list of references": (lambda g: attribute([g.ref, g.ref], h5py.ref_dtype)(g),
        "/acquisition/t@x: a list of references"),
    "nothing": (dataset(data=h5py.Empty("f4")), "/acquisition/t/x: without values"),
    "opaque": (dataset(data=np.array([b"abc"], "V3")), "/acquisition/t/x: opaque bytes"),
    "arrays in compounds": (dataset(data=np.zeros(2, [("a", "f4", (2,))])),
        "/acquisition/t/x: compounds with arrays in them"),
    "nested references": (dataset(shape=(2,), dtype=[("a", "i4"), ("n", [("r", h5py.ref_dtype)])]),
        "/acquisition/t/x: references in compounds in compounds"),
    "compounds in two axes": (dataset(data=np.zeros((2, 3), "i4,f8")),
        "/acquisition/t/x: compounds or references with more than one axis"),
    "reference to itself": (lambda g: attribute(g.ref)(g),
        "references or links that form a circle"),
    "reserved": (lambda g: g.attrs.update(_DTYPE="x"),
        "/acquisition/t@_DTYPE: a name that hdmf-zarr reserves"),
    "reserved for axes": (lambda g: g.attrs.update(_ARRAY_DIMENSIONS=["x"]),
        "/acquisition/t@_ARRAY_DIMENSIONS: a name that hdmf-zarr reserves"),
    "compound in an attribute": (attribute(np.array((1, 2.5), "i4,f8")),
        "/acquisition/t@x: a compound"),
    "enumeration": (dataset(shape=(2,), dtype=ENUM), "/acquisition/t/x: an enumeration"),
    "enumeration in an attribute": (attribute(1, ENUM), "/acquisition/t@x: an enumeration"),
    "empty axes": (attribute(np.zeros((0, 3))), "/acquisition/t@x: several axes without a value"),
    "reference to nothing": (attribute(h5py.Reference(), h5py.ref_dtype),
        "/acquisition/t@x: a reference to nothing"),
    "latin-1": (attribute(np.bytes_("é".encode("latin-1"))),
        "/acquisition/t@x: text that is not UTF-8"),
    "complex attribute": (attribute(1j), "/acquisition/t@x: complex numbers"),
    "long double": (dataset(data=np.zeros(2, np.longdouble)),
        "/acquisition/t/x: numbers of more than 64 bits"),
    "data type": (lambda g: g.update(x=np.dtype("f4")),
        "/acquisition/t/x: neither a group nor a dataset"),
    "attribute of specifications": (lambda g: attribute(1)(g.file["specifications/core"]),
        "/specifications/core@x: an attribute of specifications"),
    "link in specifications": (lambda g: links(x="/general")(g.file["specifications"]),
        "/specifications/x: among specifications, expected a text or a group"),
    "number in specifications": (lambda g: dataset(data=1)(g.file["specifications"]),
        "/specifications/x: among specifications, expected a text or a group"),
    "specifications elsewhere": (move_specifications,
        "/@.specloc: expected a reference to the group /specifications"),
}  # fmt: skip
ELSEWHERE = [  # in what a link into another file leads to
    "lengths", "two links", "second name", "dangling link", "region in an attribute",
    "compound in an attribute", "enumeration", "nothing",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_content_that_hdmf_would_lose_is_refused(small: Path, tmp_path: Path, name: str) -> None:
    make, expected = REFUSED[name]
    shutil.copy(small, tmp_path)
    with h5py.File(tmp_path / "a.nwb", "r+") as file:
        make(file["acquisition/t"])
    said = r"a\.nwb: has content that hdmf does not read"
    with pytest.raises(N5UnsupportedError, match=said) as err:
        convert(tmp_path / "a.nwb", tmp_path / "a.n5")
    assert expected in err.value.__notes__
    assert [p.name for p in tmp_path.iterdir()] == ["a.nwb"]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_it_is_refused_in_linked_files_too(tmp_path: Path, name: str) -> None:
    make, expected = REFUSED[name]
    written(tmp_path / "a.nwb", new(series("t", np.arange(5)), series("u", np.arange(5))))
    with h5py.File(tmp_path / "a.nwb", "r+") as file:
        make(file["acquisition/t"])
        vary(file["acquisition/u"])  # which nothing leads to
    written(tmp_path / "b.nwb", new())
    with h5py.File(tmp_path / "b.nwb", "r+") as file:
        file["acquisition/t"] = h5py.ExternalLink("a.nwb", "/acquisition/t")
    said = r"b\.nwb: has content that hdmf does not read"
    with pytest.raises(N5UnsupportedError, match=said) as err:
        convert(tmp_path / "b.nwb", tmp_path / "b.n5")
    place, _, what = expected.partition(": ")
    (note,) = err.value.__notes__
    assert note == f"{place} of {tmp_path / 'a.nwb'}: {what}"


NOT_IN_HDF5: dict[str, tuple[Any, str]] = {
    "NUL": ("a\0b", "expected text without NUL"),
    "a dict": ({"a": 1}, "expected text or numbers"),
    "text and numbers": (["a", 1], "expected text or numbers"),
    "null": ([1, None], "expected text or numbers"),
    "logical and numbers": ([True, 1], "expected text or numbers"),
    "a large integer": (2**70, "expected integers of 64 bits"),
    "large and negative": ([-1, 2**63], "expected integers of 64 bits"),
    "lists": ([[1, 2], [3]], "expected lists of equal lengths"),
}


@pytest.mark.parametrize("name", NOT_IN_HDF5)
def test_an_attribute_without_a_type_in_hdf5_is_refused(
    small_n5: Path, tmp_path: Path, name: str
) -> None:
    value, expected = NOT_IN_HDF5[name]
    shutil.copytree(small_n5, tmp_path / "a.n5")
    zarr.open_group(N5Store(tmp_path / "a.n5"), mode="r+")["acquisition/t"].attrs["x"] = value
    said = rf"a\.n5: /acquisition/t: attribute 'x': {expected}"
    with pytest.raises(N5UnrepresentableError, match=said):
        convert(tmp_path / "a.n5", tmp_path / "b.nwb")
    assert [p.name for p in tmp_path.iterdir()] == ["a.n5"]


def test_text_that_hdf5_does_not_have_is_refused(tmp_path: Path) -> None:
    file = new()
    table = DynamicTable(name="t", description="d", id=[1, 2])
    table.add_column(name="text", description="d", data=["a", "b\0c"])
    file.add_scratch(table)
    with NWBN5IO(tmp_path / "a.n5", mode="w") as io:
        io.write(file)
    with pytest.raises(N5UnrepresentableError, match=r"a\.n5: /scratch/t/text: value: .* NUL"):
        convert(tmp_path / "a.n5", tmp_path / "b.nwb")


def test_an_error_of_the_writer_names_the_file(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        message = "no such type"
        raise TypeError(message)

    monkeypatch.setattr(NWBN5IO, "write_builder", fail)
    said = r"a\.nwb: NWBN5IO cannot write it: TypeError: no such type"
    with pytest.raises(N5UnrepresentableError, match=said):
        convert(small, tmp_path / "a.n5")


@pytest.mark.long
def test_objects_that_a_linked_object_needs_are_copied(source: Path, tmp_path: Path) -> None:
    shutil.copy(source, tmp_path)
    linked(tmp_path / "a.nwb", "frames", new(), tmp_path / "b.nwb")
    convert(tmp_path / "b.nwb", tmp_path / "b.n5")
    with NWBN5IO(tmp_path / "b.n5", mode="r") as io:
        plane = io.read().acquisition["frames"].imaging_plane
        assert plane.optical_channel[0].emission_lambda == 510.0
        assert plane.device.name == "microscope"
    # its electrodes refer to groups that hdmf does not look for in the other file
    linked(tmp_path / "a.nwb", "raw", new(), tmp_path / "c.nwb")
    with pytest.raises(N5UnrepresentableError, match=r"/shank0 of .*a\.nwb, which has no link and"):
        convert(tmp_path / "c.nwb", tmp_path / "c.n5")
    # where there is no place for it
    file = new()
    file.create_device(name="microscope")
    linked(tmp_path / "a.nwb", "frames", file, tmp_path / "d.nwb")
    said = r"nothing at .*/microscope of .*a\.nwb, the path for"
    with pytest.raises(N5UnrepresentableError, match=said):
        convert(tmp_path / "d.nwb", tmp_path / "d.n5")


def linked(source: Path, name: str, file: NWBFile, target: Path) -> None:
    """Write a file with a link to an acquisition of another one."""
    manager = get_manager()
    with NWBHDF5IO(source, mode="r", manager=manager) as first:
        file.add_acquisition(first.read().acquisition[name])
        with NWBHDF5IO(target, mode="w", manager=manager) as io:
            io.write(file, link_data=True)


@pytest.mark.long
def test_a_table_of_many_rows(tmp_path: Path) -> None:
    """Text and compounds of a long table are read in parts, not row by row."""
    file = new()
    table = DynamicTable(name="many", description="d", id=list(range(20_000)))
    table.add_column(name="text", description="d", data=[f"row {i}" for i in range(20_000)])
    file.add_scratch(table)
    written(tmp_path / "a.nwb", file)
    reads: list[object] = []
    read = zarr.Array.__getitem__

    def counted(self: Any, key: Any) -> Any:
        reads.append(key)
        return read(self, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zarr.Array, "__getitem__", counted)
        convert(tmp_path / "a.nwb", tmp_path / "a.n5")
    assert len(reads) < 200
    with NWBN5IO(tmp_path / "a.n5", mode="r") as io:
        assert io.read().scratch["many"]["text"].data[19_999] == "row 19999"
    convert(tmp_path / "a.n5", tmp_path / "b.nwb")
    with h5py.File(tmp_path / "b.nwb") as found:  # which may grow, as pynwb makes them
        assert found["scratch/many/text"].maxshape == (None,)


@pytest.mark.parametrize(
    "shape",
    [(2, 75_000_000), (75_000_000, 2), (100_000_000, 3), (3_000_000, 1, 1), (30_000, 512, 512)],
)
def test_contiguous_arrays_get_blocks_of_about_a_megabyte(shape: tuple[int, ...]) -> None:
    with h5py.File("none", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("data", shape, "i2")
        iterator = _Slabs(data, Meter("convert", None), None)
        n_bytes = 2 * math.prod(iterator.chunk_shape)
        assert 2**18 <= n_bytes <= 2**20 * 1.1
        assert math.prod(iterator.buffer_shape) * 2 <= 2**24


def test_a_written_file_that_differs_is_no_success(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = NWBN5IO.write_builder

    def spoil(self: Any, *args: Any, **kwargs: Any) -> None:
        write(self, *args, **kwargs)
        array: Any = zarr.open_group(self.path, mode="r+")["acquisition/t/data"]
        array[3] = 7

    monkeypatch.setattr(NWBN5IO, "write_builder", spoil)
    with pytest.raises(N5Error, match="not written, as it would differ") as err:
        convert(small, tmp_path / "a.n5")
    assert err.value.kind == "differs"
    (line,) = err.value.__notes__
    assert line.startswith("/acquisition/t/data: 1 values differ, the first at (3,): ")
    (left,) = tmp_path.iterdir()
    assert left.name in str(err.value)
    assert left.name.endswith(".partial.n5")


def test_a_replaced_target_is_restored_after_an_interruption(
    small: Path, small_n5: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(small_n5, tmp_path / "a.n5")
    (tmp_path / "a.n5" / "mark").touch()
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial.n5"):
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert(small, tmp_path / "a.n5", overwrite=True, verify=False)
    assert (tmp_path / "a.n5" / "mark").exists()


def test_data_linked_in_other_files_are_copied(tmp_path: Path) -> None:
    ramp = np.arange(10)
    written(tmp_path / "a.nwb", new(series("t", ramp)))
    manager = get_manager()
    with NWBHDF5IO(tmp_path / "a.nwb", mode="r", manager=manager) as first:
        given = first.read().acquisition["t"]
        file = new(series("u", given.data))
        file.add_stimulus(given)
        with NWBHDF5IO(tmp_path / "b.nwb", mode="w", manager=manager) as io:
            io.write(file, link_data=True)
    with h5py.File(tmp_path / "b.nwb") as raw:
        assert isinstance(raw.get("acquisition/u/data", getlink=True), h5py.ExternalLink)
    convert(tmp_path / "b.nwb", tmp_path / "b.n5")
    (tmp_path / "a.nwb").unlink()
    with NWBN5IO(tmp_path / "b.n5", mode="r") as io:
        found = io.read()
        np.testing.assert_array_equal(found.acquisition["u"].data[:], ramp)
        np.testing.assert_array_equal(found.stimulus["t"].data[:], ramp)


@pytest.mark.long
def test_files_beside_the_source_are_named(tmp_path: Path) -> None:
    video = ImageSeries(
        name="video", external_file=["a.avi", "https://example.org/b.avi"], starting_frame=[0, 1],
        rate=1.0, format="external", unit="n.a.", num_samples=3,
    )  # fmt: skip
    written(tmp_path / "a.nwb", new(video))
    convert(tmp_path / "a.nwb", tmp_path / "a.n5")
    said = r"^/acquisition/video: readers will search for 'a\.avi'"
    with pytest.warns(N5Warning, match=said) as found:
        convert(tmp_path / "a.nwb", tmp_path / "sub" / "a.n5")
    assert len(found) == 1
    # also where a link leads to them
    (tmp_path / "there").mkdir()
    written(tmp_path / "there" / "b.nwb", new())
    with h5py.File(tmp_path / "there" / "b.nwb", "r+") as file:
        file["acquisition/linked"] = h5py.ExternalLink("../a.nwb", "/acquisition/video")
    with pytest.warns(N5Warning, match=r"^/acquisition/linked: readers will search for 'a\.avi'"):
        convert(tmp_path / "there" / "b.nwb", tmp_path / "there" / "b.n5")


def test_unsupported_sources_and_targets_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(N5UnrepresentableError, match=r"a\.foo: expected a suffix of .*, got '.foo"):
        convert(source, tmp_path / "a.foo")
    wrong: Any = "foo"
    with pytest.raises(N5UnrepresentableError, match=r"to \(--to\): expected .*, got 'foo'"):
        convert(source, tmp_path / "a.n5", to=wrong)
    with pytest.raises(FileNotFoundError, match="none"):
        convert(tmp_path / "none.nwb", tmp_path / "a.n5")
    (tmp_path / "text.nwb").write_text("no HDF5")
    with h5py.File(tmp_path / "plain.h5", "w"):
        pass
    (tmp_path / "folder").mkdir()
    zarr.create_group(N5Store(tmp_path / "images.n5"))
    zarr.create_group(tmp_path / "images.zarr")
    found = {
        "text.nwb": "another file", "plain.h5": "HDF5 without an NWB version",
        "folder": "another folder", "images.n5": "N5 without an NWB version",
        "images.zarr": "Zarr without an NWB version",
    }  # fmt: skip
    for name, what in found.items():
        with pytest.raises(N5UnrepresentableError, match=f"{name}: expected .*, got {what}"):
            convert(tmp_path / name, tmp_path / "a.n5")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(found)
    (tmp_path / "images.n5" / "attributes.json").write_text('{"n5": "4.0.0", ')
    with pytest.raises(N5AttributesError, match=r"attributes\.json: not JSON"):
        convert(tmp_path / "images.n5", tmp_path / "a.n5")
    zarr.create_group(tmp_path / "old.zarr", zarr_format=2)
    with pytest.raises(N5UnsupportedError, match=r"old\.zarr: Zarr v2, .*convert_to_v3"):
        convert(tmp_path / "old.zarr", tmp_path / "a.n5")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.nwb", new(series("t", np.arange(5))))

    def run(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["nwb", "convert", *arguments])
        return done.exit_code, done.stdout, done.stderr

    assert run("a.nwb", "a.n5")[:2] == (0, "a.n5: written, equal to a.nwb\n")
    status, out, err = run("a.nwb", "a.n5")
    assert (status, out) == (2, "")
    assert err.strip() == "n5zarr: error: a.n5 exists; overwrite=True (--overwrite) replaces it"
    assert run("a.n5", "b.h5", "--no-verify")[:2] == (0, "b.h5: written, not compared\n")
    copied = run("b.h5", "plain", "--to", "zarr", "--overwrite")
    assert copied[:2] == (0, "plain: written, equal to b.h5\n")
    assert (tmp_path / "plain" / "zarr.json").is_file()
    status, out, _ = run("a.n5", "c.h5", "--json")
    assert (status, json.loads(out)) == (
        0, {"source": "a.n5", "destination": "c.h5", "verified": True},
    )  # fmt: skip


MISTAKES = {
    "none.nwb b.n5": "none.nwb does not exist; the nearest existing directory is .",
    "a.nwb b.tif": "b.tif: expected a suffix of ['.nwb', ",
    "a.nwb a.nwb/b.n5": "a.nwb/b.n5: expected a location beside ",
    "a.nwb file/b/c.n5": "file/b/c.n5: expected a place in a folder, got the file ",
    "a.nwb file --to n5": "file exists; overwrite=True (--overwrite) replaces it",
    "a.nwb s3://lab/b.n5": "s3://lab/b.n5: expected a local path; NWBN5IO ",
    "a.nwb b.n5 --to tiff": "Invalid value for '--to': ",
    "a.nwb b.n5 --verfy": "No such option: --verfy",
}


def test_the_command_says_at_once_what_is_wrong(tmp_path: Path) -> None:
    for name in ("a.nwb", "file"):
        (tmp_path / name).touch()
    script = (
        "import sys\nfrom n5zarr.cli.app import app\n"
        "for arguments in sys.argv[1:]:\n"
        "    try: app(['nwb', 'convert', *arguments.split()], prog_name='n5zarr')\n"
        "    except SystemExit as end: print(end.code, {'hdmf', 'h5py'} & {*sys.modules})\n"
        "    print('next', file=sys.stderr, flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *MISTAKES],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "2 set()\n" * len(MISTAKES)
    for said, expected in zip(done.stderr.split("next\n"), MISTAKES.values(), strict=False):
        assert expected in said
    assert {path.name for path in tmp_path.iterdir()} == {"a.nwb", "file"}


def test_the_command_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).integers(0, 2**31, (300_007, 11), "int32")
    written(tmp_path / "a.nwb", new(series("t", values)))

    def terminal(*, stderr: bool) -> Console:
        return Console(stderr=stderr, force_terminal=True, width=80)

    monkeypatch.setattr("n5zarr.cli.progress.console", terminal)
    paths = [str(tmp_path / name) for name in ("a.nwb", "a.n5")]
    done = CliRunner().invoke(app, ["nwb", "convert", *paths])
    for stage in ("convert", "verify"):
        assert re.search(rf"{stage} .*12\.6/12\.6 MiB", done.stderr), done.stderr
    assert "written, equal to" in done.stdout


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = np.random.default_rng(1).integers(0, 2**31, (100_017, 5), "int32")
    path = tmp_path_factory.mktemp("large") / "a.n5"
    with NWBN5IO(path, mode="w") as io:
        io.write(new(series("t", values)))
    return path


@pytest.mark.each_of(4)
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("target", ["b.n5", "b.nwb"])
def test_the_command_cleans_up_when_it_is_stopped(
    large: Path, tmp_path: Path, programs: Programs, number: signal.Signals, target: str
) -> None:
    # while HDF5 calls back, where what is raised is lost
    script = f"""
import contextlib, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from n5zarr.hdmf import file_contents
from n5zarr.hdmf.chunking import Meter
file_contents._SLAB = 1 << 18  # it is read in more than one part
def add(self, count, add=Meter.add):
    if self._stage == "convert" and self._done == 0 and count:
        with contextlib.suppress(BaseException):
            os.kill(os.getpid(), {int(number)})
    add(self, count)
Meter.add = add
sys.argv = ["n5zarr", "nwb", "convert", {str(large)!r}, "{target}"]
cli.app()
"""
    done = programs.run(script, folder=tmp_path)
    assert done.returncode == 128 + number, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_names_every_difference(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ["/a: differs", "/b@c: too"]
    monkeypatch.setattr("n5zarr.hdmf.conversion.differences", lambda *_, **__: found)
    done = CliRunner().invoke(app, ["nwb", "convert", str(small), str(tmp_path / "a.n5")])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2:] == ["  /a: differs", "  /b@c: too"]
