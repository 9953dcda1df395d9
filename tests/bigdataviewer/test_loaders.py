"""Projects that n5zarr writes, read by the rules of Java's loaders."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import n5zarr
from tests.bigdataviewer import bigstitcher_zarr, spimdata, test_bigstitcher_hdf5
from tests.bigdataviewer.loaders import N5Loader, NullPointerError, OmeLoader
from tests.contract import bigstitcher
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS

FACTORS = [(1, 1, 1), (2, 2, 1), (4, 4, 3)]
VIEWS = [(s, t) for s in SETUPS for t in TIMEPOINTS if (s, t) != MISSING]
N_ALL = 2 * 5 + 4 * 3 * len(VIEWS)  # type and factors of setups, and four of each image
SOURCES = ["n5", "0.4", "0.5", "hdf5"]
TARGETS = ["n5", "plain", "0.4", "0.5"]
# numbers of levels that are not stored, by setup and time point
PARTIAL = {
    **{(4, t): {0} for t in TIMEPOINTS},  # only coarse ones of the whole setup
    **{(7, t): {2} for t in TIMEPOINTS},  # a pyramid that was not finished
    (0, 5): {0},
    (1, 0): {2},  # of the first time point, whose list is that of all
    (1, 2): {0, 1},
    (3, 8): {1},
}

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*the registration turns or shears:n5zarr.N5Warning"
)


@pytest.fixture(autouse=True)
def _three_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bigstitcher, bigstitcher_zarr, test_bigstitcher_hdf5):
        monkeypatch.setattr(module, "levels", lambda _: FACTORS)


def write_source(
    folder: Path, source: str, absent: Mapping[tuple[int, int], set[int]] | None = None
) -> Path:
    """Write a project without some levels; return the XML."""
    folder.mkdir()
    if source == "n5":
        xml = bigstitcher.write_project(folder)
        for number, setup in SETUPS.items():
            file = folder / f"dataset.n5/setup{number}/attributes.json"
            own = {"dataType": "uint16", "downsamplingFactors": FACTORS}
            full = {"blockSize": [64] * 3, "compression": {"type": "raw"}}  # BigStitcher's
            full["dimensions"] = setup.shape[::-1]
            file.write_text(json.dumps(own | (full if number else {})))
    elif source == "hdf5":
        xml = test_bigstitcher_hdf5.write_project(folder)
    else:
        kind = bigstitcher_zarr.KINDS["3.0" if source == "0.4" else "Zarr v3"]
        xml = bigstitcher_zarr.write_project(folder, kind)
    for (number, timepoint), numbers in (absent or {}).items():
        for level in numbers:
            if source == "n5":
                shutil.rmtree(folder / f"dataset.n5/setup{number}/timepoint{timepoint}/s{level}")
            elif source == "hdf5":
                with h5py.File(folder / "my %20.h5", "r+") as file:
                    del file[f"t{timepoint:05}/s{number:02}/{level}"]
            else:
                shutil.rmtree(folder / f"dataset.ome.zarr/s{number}-t{timepoint}.zarr/{level}")
    return xml


def resave(xml: Path, folder: Path, target: str, **options: Any) -> N5Loader:
    """Resave a project; return Java's loader of the images."""
    if target == "plain":
        n5zarr.convert(xml, folder / "my data.n5", **options)
        return N5Loader(folder / "my data.n5")
    to: Any = {"to": "n5"} if target == "n5" else {"to": "ome-zarr", "ome_version": target}
    n5zarr.convert(xml, folder / "my data.xml", **to, **options)
    return loader_of(folder / "my data.xml")


def loader_of(xml: Path) -> N5Loader:
    """Return Java's loader of a project that was written."""
    project = spimdata.read(xml)
    container = xml.parent / project.container
    if project.loader == "bdv.n5":
        return N5Loader(container)
    assert project.zarr_format is not None
    return OmeLoader(container, project, project.zarr_format)


def compare(loader: N5Loader, absent: Mapping[tuple[int, int], set[int]]) -> int:
    """Compare all that Java reads with what was written; return the number of comparisons."""
    n, is_n5 = 0, not isinstance(loader, OmeLoader)
    for setup in SETUPS:
        own = [view for view in VIEWS if view[0] == setup]
        try:
            assert loader.data_type(setup) == "uint16"
        except NullPointerError:  # as in the source
            assert not is_n5
            assert 0 in absent[own[0]]
        is_stored = [any(k not in absent.get(view, ()) for view in own) for k in range(3)]
        n_listed = 3 if is_n5 else 3 - is_stored[::-1].index(True)
        assert loader.resolutions(setup) == FACTORS[:n_listed]
        n += 2
        for view in own:
            for number, by in enumerate(FACTORS[:n_listed]):
                if number in absent.get(view, ()):
                    with pytest.raises(NullPointerError):
                        loader.level(*view, number)
                    n += 1
                    continue
                found = loader.level(*view, number)
                expected = bigstitcher.elements(*view, number)
                assert found.dimensions == expected.shape[::-1]
                assert found.shift == tuple((factor - 1) / 2 for factor in by)
                assert found.values.dtype == expected.dtype
                np.testing.assert_array_equal(found.values, expected)
                n += 4
    return n


@pytest.mark.each_of(15)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_java_reads_every_view(source: str, target: str, tmp_path: Path) -> None:
    xml = write_source(tmp_path / "old", source)
    loader = resave(xml, tmp_path / "new folder", target)
    assert compare(loader, {}) == N_ALL == 238


@pytest.mark.each_of(15)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_java_reads_pyramids_that_are_stored_in_part(
    source: str, target: str, tmp_path: Path
) -> None:
    xml = write_source(tmp_path / "old", source, PARTIAL)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", n5zarr.N5Warning)
        loader = resave(xml, tmp_path / "new", target)
    is_ome = isinstance(loader, OmeLoader)
    texts = [str(w.message) for w in caught if "levels without arrays" in str(w.message)]
    assert len(texts) == 4 * is_ome  # 0; 0 and 1; 1; 2
    n_absent = sum(map(len, PARTIAL.values()))
    of_coarse = 4 * is_ome  # which no time point of setup 7 has
    assert compare(loader, PARTIAL) == N_ALL - 3 * n_absent - of_coarse
    if target != "plain":
        xr.testing.assert_identical(
            n5zarr.open_bdv(tmp_path / "new/my data.xml").load(), n5zarr.open_bdv(xml).load()
        )


@pytest.mark.long
@pytest.mark.each_of(2)
@pytest.mark.parametrize("source", ["hdf5", "0.4"])
def test_java_reads_what_was_written_in_parts_or_interrupted(source: str, tmp_path: Path) -> None:
    xml = write_source(tmp_path / "old", source)
    for number in (2, 1):
        n5zarr.convert(xml, tmp_path / "new/my data.xml", to="n5", part=(number, 2))
    assert compare(resave(xml, tmp_path / "new", "n5", finish=True), {}) == N_ALL

    def stop(_: str, done: int, total: int) -> None:
        if done > total / 2:
            raise InterruptedError

    options: Any = {"chunks": 3, "compression": "zstd"}
    with pytest.raises(InterruptedError):
        resave(xml, tmp_path / "again", "n5", progress=stop, n_workers=1, **options)
    loader = resave(xml, tmp_path / "again", "n5", resume=True, **options)
    assert compare(loader, {}) == N_ALL


@pytest.mark.each_of(3)
@pytest.mark.parametrize("source", SOURCES)
def test_a_copy_of_one_setup_has_its_documents(source: str, tmp_path: Path) -> None:
    xml = write_source(tmp_path / "old", source)
    n5zarr.convert(xml, tmp_path / "one.n5", select="setup3/*")
    loader = N5Loader(tmp_path / "one.n5")
    assert (loader.data_type(3), loader.resolutions(3)) == ("uint16", FACTORS)
    for timepoint in (0, 2, 8):
        for number in range(3):
            expected = bigstitcher.elements(3, timepoint, number)
            np.testing.assert_array_equal(loader.level(3, timepoint, number).values, expected)
    with pytest.raises(NullPointerError):
        loader.data_type(0)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("source", ["0.4", "0.5", "hdf5"])
def test_time_points_have_the_attributes_of_bigstitcher(source: str, tmp_path: Path) -> None:
    """``WriteSequenceToN5``: the voxel size; ``setupBdvDatasetsN5``: ``saved_completely``."""
    xml = write_source(tmp_path / "old", source, {(0, 5): {0}})
    loader = resave(xml, tmp_path / "new", "n5")
    for setup, timepoint in VIEWS:
        assert loader.attributes(f"setup{setup}/timepoint{timepoint}") == {
            "resolution": [*SETUPS[setup].voxel_size],
            "saved_completely": (setup, timepoint) != (0, 5),
            "multiScale": True,
        }


def test_setups_without_documents_get_them(tmp_path: Path) -> None:
    """n5zarr reads such a project, and Java does not: resaved, both do."""
    xml = write_source(tmp_path / "old", "n5", {(0, 5): {0}})
    documents = {s: tmp_path / f"old/dataset.n5/setup{s}/attributes.json" for s in SETUPS}
    documents[0].unlink()
    documents[1].write_text('{"mine": 1}')
    kept = json.loads(documents[3].read_bytes())
    loader = resave(xml, tmp_path / "new", "n5")
    assert compare(loader, {(0, 5): {0}}) == N_ALL - 3
    assert loader.attributes("setup1")["mine"] == 1
    assert loader.attributes("setup3") == kept


def test_a_level_that_cannot_be_placed_is_an_error(tmp_path: Path) -> None:
    xml = write_source(tmp_path / "old", "n5", {(3, t): {1} for t in TIMEPOINTS if t != 5})
    document = tmp_path / "old/dataset.n5/setup3/attributes.json"
    for content in ('{"dataType": "uint16"}', '{"downsamplingFactors": [[1, 1, 1]]}'):
        document.write_text(content)
        said = "setup3/timepoint0/s1: expected this level"
        with pytest.raises(n5zarr.N5Error, match=said) as err:
            resave(xml, tmp_path / "new", "0.4")
        assert err.value.kind == "option"
    document.write_text('{"downsamplingFactors": [[1, 1, 1], [2, 0, "a"], [4, 4, 3]]}')
    with pytest.raises(n5zarr.N5Error, match=r"setup3/timepoint0/s1: downsamplingFactors"):
        resave(xml, tmp_path / "new", "0.4")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("target", ["n5", "0.4", "0.5"])
def test_java_reads_what_write_bdv_writes(target: Any, tmp_path: Path) -> None:
    """The elements of full resolution, and levels of the sizes that their factors say."""
    shape = (7, 67, 71)
    rng = np.random.default_rng(5)
    data = {(s, t): rng.integers(1, 999, shape, "u2") for s in (0, 2) for t in (1, 3)}
    del data[2, 1]
    new, is_n5 = tmp_path / "a b.xml", target == "n5"
    version = {} if is_n5 else {"ome_version": target}
    form: Any = "n5" if is_n5 else "ome-zarr"
    n5zarr.write_bdv(data, new, format=form, factors=(1, 2, 2), levels=2, chunks=31, **version)
    loader = loader_of(new)
    for (setup, timepoint), expected in data.items():
        assert loader.data_type(setup) == "uint16"
        assert loader.resolutions(setup) == [(1, 1, 1), (2, 2, 1), (4, 4, 1)]
        for number, size in enumerate([(71, 67, 7), (36, 34, 7), (18, 17, 7)]):
            level = loader.level(setup, timepoint, number)
            assert level.dimensions == size
            assert level.shift == ((2**number - 1) / 2,) * 2 + (0,)
        values = loader.level(setup, timepoint, 0).values
        np.testing.assert_array_equal(values, expected)
