"""An NWB session is the same in HDF5, N5 and Zarr, written in several ways."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pynwb
import pytest
import xarray as xr
import z5py
import zarr
from hdmf.testing import TestCase
from hdmf_zarr import NWBZarrIO
from pynwb import NWBHDF5IO, NWBFile

import n5zarr
from n5zarr import N5Store
from n5zarr.hdmf import N5IO, NWBN5IO, convert, differences
from tests.contract.stored import by_tensorstore
from tests.hdmf.sessions import START, series, session

# of plain Zarr
pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata:zarr.errors.ZarrUserWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the session as `a.nwb` and as `a.n5`, and export that to `b.nwb`."""
    folder = tmp_path_factory.mktemp("nwb")
    for name in ("a.nwb", "a.n5"):
        with opened(folder / name, "w") as io:
            io.write(session())
    export(folder, "a.n5", "b.nwb")
    return folder


@pytest.fixture(scope="module")
def all_copies(folder: Path) -> Path:
    """Export `a.nwb` to `a.zarr` and `c.n5`, and `b.nwb` to `b.n5`."""
    for source, target in (("a.nwb", "a.zarr"), ("a.nwb", "c.n5"), ("b.nwb", "b.n5")):
        export(folder, source, target)
    return folder


def export(folder: Path, source: str, target: str) -> None:
    with opened(folder / source) as first, opened(folder / target, "w") as second:
        second.export(src_io=first, write_args={"link_data": False})


def opened(path: Path, mode: str = "r") -> Any:
    classes = {".nwb": NWBHDF5IO, ".n5": NWBN5IO, ".zarr": NWBZarrIO}
    return classes[path.suffix](str(path), mode=mode)


def check_equal(folder: Path, source: str, target: str) -> None:
    """Compare as we compare files, and as hdmf compares containers."""
    with opened(folder / source) as first, opened(folder / target) as second:
        lines = differences(first, second)
        # each call of `session` makes identifiers
        is_same_session = (source, target) != ("a.nwb", "a.n5")
        assert [line for line in lines if is_same_session or "@object_id: " not in line] == []
        TestCase().assertContainerEqual(first.read(), second.read(), ignore_hdmf_attrs=True)


@pytest.mark.parametrize(("source", "target"), [("a.nwb", "a.n5"), ("a.n5", "b.nwb")])
def test_every_dataset_and_attribute_is_equal(folder: Path, source: str, target: str) -> None:
    check_equal(folder, source, target)


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "target"), [("a.nwb", "a.zarr"), ("a.nwb", "c.n5"), ("b.nwb", "b.n5")]
)
def test_every_dataset_and_attribute_of_a_copy_is_equal(
    all_copies: Path, source: str, target: str
) -> None:
    check_equal(all_copies, source, target)


@pytest.mark.parametrize("by_store", [True, False])
def test_a_written_session_is_read_back(folder: Path, by_store: bool) -> None:
    path, written = folder / "a.n5", session()
    # hdmf-zarr's own class takes the store
    io = NWBZarrIO(path=N5Store(path), mode="r") if by_store else NWBN5IO(path, mode="r")
    with io:
        file = io.read()
        random = np.random.default_rng(7)
        raw = random.integers(-2000, 2000, (1009, 3), "int16")
        found = file.acquisition["raw"].data[:]
        assert found.dtype == "int16"
        np.testing.assert_array_equal(found, raw)
        assert isinstance(written.acquisition["half"].data, np.ndarray)
        for name in ("half", "empty", *(n for n in written.acquisition if n.startswith("of_"))):
            expected, found = written.acquisition[name].data, file.acquisition[name].data[:]
            assert found.dtype == expected.dtype, name
            assert found.tobytes() == expected.tobytes(), name
        assert file.acquisition["clock"].data[0] == -(2**62)
        trials = file.trials
        assert trials["correct"].data.dtype == bool
        assert trials["correct"].data[:].tolist() == [bool(i % 3) for i in range(6)]
        assert list(trials["tags"][2]) == ["a", "a"]
        assert trials["timeseries"].target.data[2][2].name == "clock"
        assert file.units["spike_times"][0].shape == (0,)
        assert len(file.units["spike_times"][3]) == 15
        assert file.stimulus["linked"].timestamps is file.acquisition["clock"].timestamps
        assert file.processing["ecephys"]["LFP"]["lfp"].electrodes.table is file.electrodes
        assert file.electrode_groups["shank1"].position.tolist()[0] == 1.5
        mask = file.processing["ophys"]["ImageSegmentation"]["cells"]["pixel_mask"][2]
        assert [tuple(row) for row in mask] == [(x, 2 * x, np.float32(0.1 * x)) for x in range(3)]
        assert list(file.acquisition["video"].external_file[:]) == ["a.avi", "b.avi"]
        assert file.session_description == written.session_description
        assert file.keywords[:].tolist() == ["n5", "", "nwb"]
        assert file.session_start_time == START


def test_text_may_hold_what_c_strings_cannot(tmp_path: Path) -> None:
    file = small("a\0b\0")
    file.add_scratch(["\0", "", "x\0", "\0\0y"], name="texts", description="with NUL")
    with NWBN5IO(tmp_path / "s.n5", mode="w") as io:
        io.write(file)
    with NWBN5IO(tmp_path / "s.n5", mode="r") as io:
        found = io.read()
        assert found.identifier == "a\0b\0"
        assert list(found.scratch["texts"].data[:]) == ["\0", "", "x\0", "\0\0y"]


@pytest.mark.long
def test_pynwb_validates_it_as_it_does_zarr(all_copies: Path) -> None:
    errors = {}
    for name in ("c.n5", "a.zarr"):
        with opened(all_copies / name) as io:
            errors[name] = sorted(map(str, pynwb.validate(io=io)))
    assert errors["c.n5"] == errors["a.zarr"]


NUMERIC = ("acquisition/raw/data", "acquisition/frames/data", "units/spike_times", "units/id/")
STORED = {"intervals/trials/correct": "uint8", "acquisition/half/data": "float32"}


@pytest.mark.parametrize("path", NUMERIC)
def test_numbers_are_plain_n5_for_tensorstore_and_z5py(folder: Path, path: str) -> None:
    path = path.rstrip("/")
    with h5py.File(folder / "a.nwb") as file:
        expected = file[path][()]
    found = by_tensorstore(folder / "a.n5" / path)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    dataset = z5py.File(str(folder / "a.n5"), mode="r")[path]
    np.testing.assert_array_equal(dataset[:], expected)
    assert dataset.dtype == expected.dtype


@pytest.mark.parametrize("path", STORED)
def test_a_type_that_n5_lacks_is_stored_as_the_nearest(folder: Path, path: str) -> None:
    with h5py.File(folder / "a.nwb") as file:
        expected = file[path][()].astype(STORED[path])
    found = by_tensorstore(folder / "a.n5" / path)
    assert found.dtype == STORED[path]
    np.testing.assert_array_equal(found, expected)


def test_axes_have_names_in_xarray(folder: Path) -> None:
    ds = xr.open_dataset(folder / "a.n5" / "acquisition" / "raw", engine="n5")
    assert ds["data"].dims == ("num_times", "num_channels")
    shown = xr.open_zarr(N5Store(folder / "a.n5", coords=True), group="acquisition/frames")
    assert shown["data"].dims == ("time", "width", "height")
    assert shown["data"].dtype == "uint16"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*readers will search for '..avi':n5zarr.N5Warning")
def test_axes_have_the_names_that_hdmf_zarr_gives_them(all_copies: Path, tmp_path: Path) -> None:
    convert(all_copies / "a.nwb", tmp_path / "ours.zarr", verify=False)
    named = axis_names(all_copies / "a.zarr")
    assert len(named) > 60
    # which hdmf-zarr names like any column, although it is a region
    assert named.pop("units/electrodes") == ["dim0"]
    ours = axis_names(tmp_path / "ours.zarr")
    assert {path: ours[path] for path in named} == named


def axis_names(path: Path) -> dict[str, Any]:
    members = zarr.open_group(path, mode="r").members(max_depth=None)
    key = "_ARRAY_DIMENSIONS"
    return {name: node.attrs[key] for name, node in members if key in node.attrs}


def small(identifier: str) -> NWBFile:
    file = NWBFile(session_description="x", identifier=identifier, session_start_time=START)
    file.add_acquisition(series("t", np.arange(15).reshape(5, 3)))
    file.add_trial_column(name="good", description="whether")
    file.add_trial(start_time=0.0, stop_time=1.0, good=True)
    return file


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("short") / "s.n5"
    with NWBN5IO(path, mode="w") as io:
        io.write(small("a"))
    return path


@pytest.mark.parametrize("mode", ["r+", "a"])
def test_appended_rows_are_there_on_reopening(short: Path, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "s.n5"
    shutil.copytree(short, path)
    with NWBN5IO(path, mode=mode) as io:
        file = io.read()
        file.acquisition["t"].data.append(np.array([[15, 16, 17]]))
        file.trials.add_row(start_time=2.0, stop_time=3.0, good=False)
        file.add_acquisition(series("new", [1.5, 2.5]))
        io.write(file)
    for again in ("r", "r-", "r+"):
        with NWBN5IO(path, mode=again) as io:
            file = io.read()
            np.testing.assert_array_equal(
                file.acquisition["t"].data[:], np.arange(18).reshape(6, 3)
            )
            assert file.trials["good"].data[:].tolist() == [True, False]
            assert file.trials["start_time"].data[:].tolist() == [0.0, 2.0]
            assert file.acquisition["new"].data[:].tolist() == [1.5, 2.5]


def test_a_container_says_whether_it_can_be_read(tmp_path: Path, folder: Path) -> None:
    n5zarr.create_array(tmp_path / "plain.n5", path="a", shape=(3,), chunks=(3,), dtype="u1")
    with NWBZarrIO(str(tmp_path / "a.zarr"), mode="w") as io:
        io.write(small("zarr"))
    expected = {
        folder / "a.n5": (True, True), folder / "a.nwb": (False, False),
        tmp_path / "a.zarr": (False, False), tmp_path / "plain.n5": (True, False),
        tmp_path: (False, False), tmp_path / "none": (False, False),
    }  # fmt: skip
    for path, (is_n5, is_nwb) in expected.items():
        assert (N5IO.can_read(str(path)), NWBN5IO.can_read(str(path))) == (is_n5, is_nwb), path
    assert NWBN5IO.can_read(N5Store(folder / "a.n5"))
    file = NWBN5IO.read_nwb(folder / "a.n5")
    assert file.identifier == "a session"
    file.read_io.close()
