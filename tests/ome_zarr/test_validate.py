"""``validate`` finds what yaozarrs refuses in OME-Zarr, and nothing in what it accepts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import zarr

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from tests.command import CliRunner
from tests.contract.viewers import validate_ome
from tests.ome_zarr.documents import change
from tests.ome_zarr.test_pyramid import elements, write
from tests.remote.servers import static

JAVA = Path(__file__).parents[1] / "data" / "java" / "metadata.n5"
FORMATS = pytest.mark.parametrize("zarr_format", [2, 3], ids=["0.4", "0.5"])


def is_refused(path: Path) -> bool:
    """Whether yaozarrs refuses a group."""
    try:
        validate_ome(path)
    except (AssertionError, ValueError):
        return True
    return False


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Write an image with two levels in each format, which both accept."""
    written = {}
    for zarr_format in (2, 3):
        path = written[zarr_format] = tmp_path_factory.mktemp("images") / "a.zarr"
        write(path, zarr_format)
        n5zarr.build_pyramid(path, levels=1)
        assert not is_refused(path)
        assert n5zarr.validate(path, deep=True).findings == ()
    return written


@pytest.fixture
def path(images: dict[int, Path], zarr_format: int, tmp_path: Path) -> Path:
    """Return a copy of the image of this format."""
    return Path(shutil.copytree(images[zarr_format], tmp_path / "a.zarr"))


def steps(image: Any, level: int = 1) -> Any:
    return image["datasets"][level]["coordinateTransformations"]


BAD: dict[str, tuple[Any, str]] = {
    "a level is missing": (lambda o, i: i["datasets"][1].update(path="9"), "an array at '9', got"),
    "no levels": (lambda o, i: i.update(datasets=[]), "datasets: expected levels"),
    "no path": (lambda o, i: i["datasets"][1].pop("path"), "path: expected that of an array below"),
    "fewer axes": (lambda o, i: i["axes"].pop(), "expected 3 numbers, got"),
    "no axes": (lambda o, i: i.pop("axes"), "axes: expected a list of 2 to 5 axes"),
    "two axes of a name": (lambda o, i: i["axes"][1].update(name="x"), "distinct names"),
    "order of axes": (lambda o, i: i["axes"].insert(3, i["axes"].pop(0)),
        "expected the order time, channel, sp"),
    "one axis of space": (lambda o, i: [axis.update(type="channel") for axis in i["axes"][1:3]],
        "two or three of the type space"),
    "no scale": (lambda o, i: steps(i).pop(0), "expected a scale, and perhaps a translation"),
    "no transforms": (lambda o, i: i["datasets"][0].pop("coordinateTransformations"), "expected a"),
    "two scales": (lambda o, i: steps(i).append(steps(i)[0]), "expected a scale, and perhaps a tr"),
    "translation first": (lambda o, i: steps(i).reverse(), "expected a scale, and perhaps a trans"),
    "affine": (lambda o, i: steps(i)[0].update(type="affine"), "expected a scale, and perhaps a t"),
    "short scale": (lambda o, i: steps(i)[0]["scale"].pop(), "expected 4 numbers"),
    "transform of the image": (
        lambda o, i: i.update(coordinateTransformations=[{"type": "scale", "scale": [1, 2]}]),
        "expected 4 numbers, got"),
    "no images": (lambda o, i: o.update(multiscales=[]), "multiscales: expected a list of images"),
}  # fmt: skip


@pytest.mark.each_of(5)
@FORMATS
@pytest.mark.parametrize("case", BAD)
def test_what_yaozarrs_refuses_is_found(path: Path, case: str) -> None:
    function, message = BAD[case]
    change(path, function)
    assert is_refused(path)
    result = n5zarr.validate(path)
    assert not result.ok
    assert {(f.kind, f.severity) for f in result.findings} == {("ome-zarr", "error")}
    assert any(message in finding.message for finding in result.findings), result.findings
    assert list(n5zarr.find_problems(path))
    done = CliRunner().invoke(app, ["validate", str(path)])
    assert (done.exit_code, "error" in done.output) == (1, True)


MORE: dict[str, tuple[Any, str]] = {
    "order of levels": (lambda o, i: i["datasets"].reverse(), "expected no larger shape"),
    "outside": (lambda o, i: i["datasets"][1].update(path="../a.zarr/0"), "path: expected that of"),
    "backslash": (lambda o, i: i["datasets"][1].update(path="..\\1"), "path: expected that of"),
    "in another": (lambda o, i: i["datasets"][1].update(path="0/1"), "that are not in each other"),
    "itself": (lambda o, i: i["datasets"][1].update(path="."), "path: expected that of an array"),
    "scale and shape": (lambda o, i: steps(i)[0]["scale"].__setitem__(3, 64.0), "scale: expected"),
    "units": (lambda o, i: i["axes"][1].update(units=i["axes"][1].pop("unit", "um")),
        "axes: expected unit, got units"),
    "infinite scale": (lambda o, i: steps(i, 0)[0]["scale"].__setitem__(3, float("inf")),
        "scales above 0"),
    "colour": (lambda o, i: o["omero"]["channels"][0].update(color="red"), "channel 0: color"),
    "short colour": (lambda o, i: o["omero"]["channels"][0].update(color="F00"),
        "channel 0: color"),
    "window": (lambda o, i: o["omero"]["channels"][1]["window"].pop("min"), "channel 1: window"),
}  # fmt: skip


@pytest.mark.each_of(3)
@FORMATS
@pytest.mark.parametrize("case", MORE)
def test_more_is_found_than_yaozarrs_does(path: Path, case: str) -> None:
    function, message = MORE[case]
    change(path, function)
    assert message in _messages(path)


@FORMATS
def test_levels_of_another_type_and_rank_are_found(path: Path, zarr_format: Any) -> None:
    group = zarr.open_group(path, mode="r+")
    group.create_array("1", data=elements("u1")[:, :, ::2, ::2], overwrite=True)
    assert "expected the data type of 0, uint16, got uint8" in _messages(path)
    group.create_array("1", data=elements("u2")[0], overwrite=True)
    assert "1: expected 4 axes, as multiscales has, got 3" in _messages(path)
    (path / "1" / ("zarr.json" if zarr_format == 3 else ".zarray")).write_text("{")
    assert any(f.path == "1" or "'1'" in f.message for f in n5zarr.validate(path).findings)


def _messages(path: Path) -> str:
    return "\n".join(finding.message for finding in n5zarr.validate(path).findings)


@pytest.mark.parametrize("zarr_format", [3])
def test_names_of_dimensions_are_those_of_the_axes(path: Path) -> None:
    document = json.loads((path / "0" / "zarr.json").read_text())
    document["dimension_names"] = list("cxyz")
    (path / "0" / "zarr.json").write_text(json.dumps(document))
    assert is_refused(path)
    assert "0: dimension_names: expected ['c', 'z', 'y', 'x']" in _messages(path)


@FORMATS
def test_labels_are_checked(path: Path, zarr_format: Any) -> None:
    labels = zarr.open_group(path, mode="r+").create_group("labels")
    listed: Any = {"labels": ["cells", "gone", "../.."]}
    labels.attrs.update({"ome": {"version": "0.5", **listed}} if zarr_format == 3 else listed)
    write(path, zarr_format, path="labels/cells", data=elements("f4"), label={})
    found = {(f.path, f.kind, f.message) for f in n5zarr.validate(path).findings}
    assert found == {
        ("labels", "ome-zarr", "expected a node at 'gone', which is listed, got none"),
        ("labels", "ome-zarr", 'labels: expected the path of a node below the group, got "../.."'),
        ("labels/cells", "ome-zarr", "0: expected integers, as these are labels, got float32"),
        ("labels/cells", "levels",
         "multiscales: expected the 2 levels of their image, got 1; n5zarr pyramid writes them"),
    }  # fmt: skip


@FORMATS
def test_damaged_chunks_are_found_by_deep(path: Path, zarr_format: Any) -> None:
    chunk = path / "0" / ("c/1/2/0/1" if zarr_format == 3 else "1/2/0/1")
    if zarr_format == 2 and not chunk.exists():
        chunk = path / "0" / "1.2.0.1"
    chunk.write_bytes(chunk.read_bytes()[:-9])
    assert n5zarr.validate(path).ok
    (found,) = n5zarr.validate(path, deep=True).findings
    assert (found.kind, found.path, found.severity) == ("payload", "0", "error")
    assert found.message.startswith("chunk 1, 2, 0, 1: ")


@pytest.mark.parametrize("zarr_format", [3])
def test_deep_decodes_chunks_that_a_server_does_not_list(path: Path, tmp_path: Path) -> None:
    chunk = path / "0" / "c/1/2/0/1"
    chunk.write_bytes(chunk.read_bytes()[:-9])
    with static(tmp_path, lists=False) as url:
        (found,) = n5zarr.validate(f"{url}/a.zarr", deep=True).findings
    assert found.message.startswith("chunk 1, 2, 0, 1: ")


@pytest.mark.each_of(2)
@pytest.mark.parametrize("version", ["0.4", "0.5", "0.6"])
def test_what_conversions_write_has_no_problems(tmp_path: Path, version: Any) -> None:
    for source in (JAVA, n5zarr.sample_path()):
        out = tmp_path / f"{Path(source).name}.zarr"
        n5zarr.convert(source, out, ome=True, ome_version=version)
        result = n5zarr.validate(out, deep=True)
        assert result.findings == ()
        assert result.n_datasets >= 4
        has_lists = source == JAVA
        with static(tmp_path, lists=has_lists) as url:
            remote = n5zarr.validate(f"{url}/{out.name}")
        assert remote.findings == ()
        assert remote.n_datasets in ([result.n_datasets] if has_lists else (3, 4))


@pytest.mark.parametrize("zarr_format", [2])
def test_broken_documents_and_options(path: Path, tmp_path: Path) -> None:
    with pytest.raises(N5UnrepresentableError, match="finish: expected none with OME-Zarr"):
        n5zarr.validate(path, state=tmp_path / "state")
    done = CliRunner().invoke(app, ["validate", "--clean", "--yes", str(path)])
    assert done.exit_code == 0, done.output
    shutil.copytree(path, tmp_path / "b.zarr")
    zarr.open_group(path, mode="r+").create_group("broken")
    (path / "broken" / ".zattrs").write_text("[")
    (found,) = n5zarr.validate(path).findings
    assert (found.kind, found.path) == ("json", "broken")


@FORMATS
def test_numbers_that_json_lacks_are_named(path: Path) -> None:
    """zarr-python writes and reads NaN; browsers, and tensorstore in v3, refuse the document."""
    group = zarr.open_group(path, mode="r+")
    group.attrs["fit"] = {"a": [1, float("nan")]}
    group["0"].attrs["end"] = float("-inf")
    found = {each.path: each for each in n5zarr.validate(path).findings}
    assert {where: (each.kind, each.severity) for where, each in found.items()} == {
        "": ("json", "error"), "0": ("json", "error"),
    }  # fmt: skip
    assert found[""].message.endswith("attributes/fit/a/1")
    assert found["0"].message.endswith("attributes/end")


def test_chunks_of_ome_zarr_are_counted(tmp_path: Path) -> None:
    """They are listed if they are decoded, or expected."""
    path = tmp_path / "a.zarr"
    n5zarr.convert(n5zarr.sample_path(), path, ome=True, select=["em/*"])
    assert n5zarr.validate(path).block_counts == ()
    assert n5zarr.validate(path, expect_complete=True).ok
    assert zarr.open_array(path, path="em/s0", mode="r").nchunks == 27
    (path / "em/s0/c/2/1/0").unlink()
    result = n5zarr.validate(path, deep=True)
    (count,) = (c for c in result.block_counts if c.path == "em/s0")
    assert (count.n_stored, count.n_blocks) == (26, 27)
    (note,) = result.findings
    assert (note.path, note.severity) == ("em/s0", "note")
    assert note.message.startswith("missing among 26 that are stored: block 2/1/0;")
    coarsest = (path / "em/s2/c/0/0/0").rename(tmp_path / "coarsest")
    notes = n5zarr.validate(path, deep=True).findings
    assert [each.path for each in notes] == ["em/s0", "em/s2"]
    assert notes[1].message.startswith("missing where s1 has blocks: block 0/0/0;")
    coarsest.rename(path / "em/s2/c/0/0/0")
    (error,) = n5zarr.validate(path, expect_complete=True).findings
    assert error.message == "expected 27 blocks, got 26, without block 2/1/0"
    with (
        static(tmp_path, lists=False) as url,
        pytest.raises(N5UnsupportedError, match="expected storage that lists chunks"),
    ):
        n5zarr.validate(f"{url}/a.zarr", expect_complete=True)
