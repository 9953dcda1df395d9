"""Plates of OME-Zarr become N5 and back, with all fields and all metadata."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from ome_zarr.format import FormatV04, FormatV05

import n5zarr
from n5zarr.images.find import find_images
from tests.contract.viewers import validate_ome
from tests.ome_zarr.documents import change, metadata
from tests.remote.servers import static

VERSIONS = pytest.mark.parametrize("version", ["0.4", "0.5"])
PAIRS = pytest.mark.parametrize(
    ("plate", "version"),
    [("0.4", "0.5"), ("0.4", "0.4"), ("0.5", "0.4"), ("0.5", "0.5")],
    indirect=["plate"],
)
FIELDS = [f"{well}/{field}" for well in ("A/1", "B/3") for field in "01"]
AXES = [{"name": "c", "type": "channel"}] + [
    {"name": name, "type": "space", "unit": "micrometer"} for name in "yx"
]


def elements(field: str) -> np.ndarray[Any, Any]:
    seed = FIELDS.index(field)
    return np.random.default_rng(seed).integers(0, 9999, (2, 11, 13)).astype("u2")


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("plates")
    return {version: write_plate(folder / version, version) for version in ("0.4", "0.5")}


@pytest.fixture(params=["0.4", "0.5"])
def plate(plates: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return Path(shutil.copytree(plates[request.param], tmp_path / "plate.ome.zarr"))


def write_plate(path: Path, version: str) -> Path:
    """Write a plate with ome-zarr-py."""
    fmt: Any = FormatV04() if version == "0.4" else FormatV05()
    root = zarr.open_group(path, mode="w", zarr_format=fmt.zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of itself
        from ome_zarr import writer  # noqa: PLC0415

        runs = [{"id": 7, "name": "first", "maximumfieldcount": 2}]
        writer.write_plate_metadata(
            root, ["A", "B"], ["1", "2", "3"], ["A/1", "B/3"],
            fmt=fmt, acquisitions=runs, field_count=2, name="a screen",
        )  # fmt: skip
        for field in FIELDS:
            well = root.require_group(field.rpartition("/")[0])
            images = [{"path": each, "acquisition": 7} for each in "01"]
            writer.write_well_metadata(well, images, fmt=fmt)
            scales = [[{"type": "scale", "scale": [1.0, 0.5 * k, 0.25 * k]}] for k in (1, 2)]
            data = elements(field)
            writer.write_multiscale(
                [data, data[:, ::2, ::2]], root.require_group(field), axes=AXES, fmt=fmt,
                coordinate_transformations=scales,
            )  # fmt: skip
    validate_ome(path)
    return path


@pytest.mark.each_of(2)  # to the other version
@PAIRS
def test_a_plate_comes_back_whole(plate: Path, tmp_path: Path, version: Any) -> None:
    """Also from one version to the other."""
    out, back = tmp_path / "out.n5", tmp_path / "back.ome.zarr"
    n5zarr.convert(plate, out)
    assert [image.path for image in find_images(out)] == FIELDS
    n5zarr.convert(out, back, ome=True, ome_version=version)
    validate_ome(back)
    assert n5zarr.validate(back, deep=True).findings == ()
    for path in ("", "A/1", "B/3"):
        assert metadata(back / path) == metadata(plate / path)
    assert not (back / "OME").exists()
    for field in FIELDS:
        group = zarr.open_group(back / field, mode="r")
        (first, second) = (array for _, array in sorted(group.arrays()))
        np.testing.assert_array_equal(first[...], elements(field))
        np.testing.assert_array_equal(second[...], elements(field)[:, ::2, ::2])
        found = n5zarr.geometry(out, f"{field}/s1")
        assert (found.names, found.scale) == (("c", "y", "x"), (1.0, 1.0, 0.5))


def remove_rows(plate: Path) -> None:
    """Remove documents that some writers leave out."""
    for path in plate.glob("[AB]/*"):
        if path.is_file():
            path.unlink()


@pytest.mark.each_of(3)
@pytest.mark.parametrize("has_rows", [True, False])
@VERSIONS
def test_a_plate_gets_another_version(
    plate: Path, tmp_path: Path, version: Any, *, has_rows: bool
) -> None:
    expected = {path: metadata(plate / path) for path in ("", "A/1", "B/3")}
    if not has_rows:
        remove_rows(plate)
        # nor have wells the indices, before 0.4
        document = next(f for f in (plate / ".zattrs", plate / "zarr.json") if f.exists())
        text = re.sub(r'"(row|column)Index": \d+,?', "", document.read_text())
        document.write_text(re.sub(r",(\s*})", r"\1", text))
    out = tmp_path / "out.ome.zarr"
    n5zarr.convert(plate, out, ome=True, ome_version=version)
    validate_ome(out)
    for path in ("", "A/1", "B/3", *FIELDS):
        assert metadata(out / path).keys() - {"_ARRAY_DIMENSIONS"} <= metadata(plate / path).keys()
    assert {path: metadata(out / path) for path in expected} == expected
    for field in FIELDS:
        group = zarr.open_group(out / field, mode="r")
        (first, _) = (array for _, array in sorted(group.arrays()))
        np.testing.assert_array_equal(first[...], elements(field))
    some = tmp_path / "some.ome.zarr"
    if has_rows:
        n5zarr.convert(plate, some, ome=True, ome_version=version, select="A/1/1/*")
        validate_ome(some)
        assert [well["path"] for well in metadata(some)["plate"]["wells"]] == ["A/1"]
        assert metadata(some / "A/1")["well"]["images"] == [{"path": "1", "acquisition": 7}]


@pytest.mark.each_of(2)
def test_fields_are_shown_like_other_images(plate: Path, tmp_path: Path) -> None:
    n5zarr.convert(plate, tmp_path / "out.n5")
    expected = np.asarray(n5zarr.thumbnail(tmp_path / "out.n5", all_images=True, size=200))
    remove_rows(plate)
    with static(tmp_path, lists=False) as url:
        for place in (plate, f"{url}/plate.ome.zarr"):
            found = np.asarray(n5zarr.thumbnail(place, all_images=True, size=200))
            np.testing.assert_array_equal(found, expected)


@pytest.mark.each_of(2)  # to the other version
@PAIRS
def test_a_plate_of_bioformats2raw_stays_a_collection(
    plate: Path, tmp_path: Path, version: Any
) -> None:
    root = zarr.open_group(plate, mode="r+")
    attributes: Any = root.attrs.asdict()
    holder = attributes.get("ome", attributes)
    holder["bioformats2raw.layout"] = 3
    root.attrs.put(attributes)
    listed: Any = {"series": FIELDS}
    is_v2 = root.metadata.zarr_format == 2
    root.create_group("OME").attrs.update(listed if is_v2 else {"ome": {"version": "0.5"} | listed})
    n5zarr.convert(plate, tmp_path / "out.n5")
    back = tmp_path / "back.ome.zarr"
    n5zarr.convert(tmp_path / "out.n5", back, ome=True, ome_version=version)
    assert metadata(back) == metadata(plate)
    assert metadata(back / "OME") == {"series": FIELDS}
    validate_ome(back)


def test_other_attributes_of_this_name_are_no_plate(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "in.n5" / "em" / "s0", data=np.ones((5, 7), "u1"), axes="yx")
    n5zarr.set_attribute(tmp_path / "in.n5", "", "plate", "P7")
    n5zarr.convert(tmp_path / "in.n5", tmp_path / "out.zarr", ome=True)
    attributes = zarr.open_group(tmp_path / "out.zarr", mode="r").attrs.asdict()
    assert attributes["plate"] == "P7"
    assert metadata(tmp_path / "out.zarr") == {"bioformats2raw.layout": 3}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p: p["wells"][0].update(path="B/1"), "the path ROW/COLUMN of rowIndex and"),
        (lambda p: p["wells"][1].update(rowIndex=5), "the path ROW/COLUMN of rowIndex and"),
        (lambda p: p["wells"][1].update(path="../B/3"), "plate: wells: expected the path of a no"),
        (lambda p: p.pop("columns"), "plate: columns: expected a list, got null"),
        (lambda p: p["wells"].append({"path": "B/2", "rowIndex": 1, "columnIndex": 1}),
         "expected a node at 'B/2', which is listed, got none"),
    ],
    ids=["path", "index", "outside", "columns", "missing"],
)  # fmt: skip
def test_wrong_plates_are_found(plate: Path, function: Any, message: str) -> None:
    change(plate, lambda ome, _: function(ome["plate"]))
    messages = [finding.message for finding in n5zarr.validate(plate).findings]
    assert any(message in each for each in messages), messages
