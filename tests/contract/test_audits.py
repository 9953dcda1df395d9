"""Reports prove a copy to others: places, paths that move, parts; and a script without n5zarr."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
import z5py
import zarr

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError, N5Warning
from tests.command import CliRunner

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
PAGE = (ROOT / "docs/reports.md").read_text()
(SCRIPT,) = re.findall("(?ms)^```python\n(# verify_report.py\n.*?)^```", PAGE)
VALUES = np.random.default_rng(7).integers(0, 2**16, (3, 5, 7)).astype("u2")
PLACES = {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4.0, 5.0, 6.5]}
COPIES: dict[str, tuple[dict[str, Any], str]] = {  # the options, and the document of axes
    "a.n5": ({"chunks": 2}, "attributes.json"),
    "a.zarr": ({}, "zarr.json"),
    "2.zarr": ({"to": "zarr2"}, ".zattrs"),
    "o.zarr": ({"ome": True}, "../zarr.json"),
    "o4.zarr": ({"ome": True, "ome_version": "0.4"}, "../.zattrs"),
}
STEPS = "coordinateTransformations"
SWAPPED = {"x": "y", "y": "x"}
PLANTED: dict[str, Callable[[str], str]] = {
    "unit": lambda text: re.sub('"(nm|nanometer)"', '"um"', text, count=1),
    "name": lambda text: re.sub('"([xy])"', lambda found: f'"{SWAPPED[found[1]]}"', text),
    "scale": lambda text: re.sub(r'("(?:scale|resolution)":\s*\[\s*)', r"\g<1>1", text, count=1),
}


def called(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, result.output


def run_of(report: Path) -> Any:
    return json.loads(report.read_text())["runs"][0]


@pytest.fixture
def audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path], str]:
    """Run the script of the page, which cannot import n5zarr; return what it prints if it fails."""
    assert len(SCRIPT.splitlines()) <= 60
    script = tmp_path / "verify_report.py"
    script.write_text(SCRIPT)

    def run(report: Path) -> str:
        with monkeypatch.context() as hidden:
            hidden.setitem(sys.modules, "n5zarr", None)
            hidden.setattr(sys, "argv", [str(script), str(report)])
            with pytest.raises(SystemExit) as end:
                runpy.run_path(str(script))
        printed = capsys.readouterr().out
        assert end.value.code or printed.startswith("ok\n")
        return printed if end.value.code else ""

    return run


def of_java(place: Path) -> None:
    shutil.copytree(DATA / "java/metadata.n5/cosem", place / "em")


def of_tensorstore(place: Path) -> None:
    metadata = {"dataType": "uint16", "blockSize": [2, 3, 5], "compression": {"type": "gzip"}}
    spec = {"driver": "n5", "kvstore": f"file://{place}/em/s0/"}
    whole = {**spec, "metadata": {**metadata, **PLACES, "dimensions": [7, 5, 3]}}
    ts.open(whole, create=True).result().write(VALUES.T).result()


def of_z5py(place: Path) -> None:
    with z5py.File(str(place), "w", use_zarr_format=False) as file:
        file.create_dataset("em/s0", data=VALUES, chunks=(2, 3, 4), compression="gzip")
        file["em/s0"].attrs.update(PLACES)


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("write", [of_java, of_tensorstore, of_z5py])
def test_an_auditor_finds_one_changed_value_unit_axis_or_distance(
    tmp_path: Path, audit: Callable[[Path], str], write: Callable[[Path], None], copy: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    write(home / "source.n5")
    options: Any = {"verify": True, "report": home / "r.json", **COPIES[copy][0]}
    assert n5zarr.convert(home / "source.n5", home / copy, **options).same_places
    shutil.move(home, tmp_path / "moved")  # the report with its data
    report = tmp_path / "moved/r.json"
    assert audit(report) == ""
    array = tmp_path / "moved" / run_of(report)["datasets"][0]["destination"]["name"]
    document = array / COPIES[copy][1]
    before = document.read_text()
    for key, changed in PLANTED.items():
        document.write_text(changed(before))
        assert f"{key}: the report has" in audit(report), key
    document.write_text(before)
    driver = "n5" if copy == "a.n5" else "zarr" if (array / ".zarray").exists() else "zarr3"
    opened = ts.open({"driver": driver, "kvstore": f"file://{array}/"}).result()
    last = opened[tuple(n - 1 for n in opened.shape)]
    last.write(last.read().result() ^ 1).result()
    assert "values: the report has" in audit(report)


def of_ome(place: Path) -> None:
    """Write levels in a folder, units that N5 has short, and a scale of the whole image."""
    units = {"t": "millisecond", "z": "nanometer", "y": "centimeter", "x": "pixel"}
    axes = [{"name": name, "type": "space", "unit": unit} for name, unit in units.items()]
    steps = [[{"type": "scale", "scale": [n, 2.0, 3.0, 5.0]}] for n in (1.0, 4.0)]
    level = {"path": "a/0", "coordinateTransformations": steps[0]}
    image: Any = {"axes": axes, "datasets": [level], "coordinateTransformations": steps[1]}
    group = zarr.create_group(place).create_group("em")
    group.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
    group.create_array("a/0", data=VALUES[None], dimension_names=tuple(units))


IMAGE = "attributes", "ome", "multiscales", 0
FIRST = "datasets", 0
TWICE = [{"type": "scale", "scale": [2.0] * 3}]
# document, member, value, what is said
MOVED: list[tuple[str, tuple[str | int, ...], Any, str]] = [
    ("a.n5/em/s0/attributes.json", ("axes",), None, "not stated: name"),
    ("a.n5/em/s0/attributes.json", ("units",), None, "not stated: unit"),
    ("a.n5/em/s0/attributes.json", ("resolution",), None, "not stated: scale"),
    ("a.n5/em/s0/attributes.json", ("offset",), None, "not stated: translation"),
    ("a.zarr/em/s0/zarr.json", ("dimension_names",), None, "not stated: name"),
    ("o.zarr/em/zarr.json", ("attributes", "ome"), None, "not stated: scale"),
    ("o.zarr/em/zarr.json", (*IMAGE, *FIRST, STEPS), [], "scale: the report has"),
    ("o.zarr/em/zarr.json", (*IMAGE, STEPS), TWICE, "scale: the report has"),
    ("u.zarr/em/zarr.json", (*IMAGE, "axes", 0, "unit"), "second", "unit: the report has"),
    ("c.n5/em/attributes.json", (*IMAGE[2:], *FIRST, "transform", "scale"), [5, 4, 9], "scale: "),
]


def test_an_auditor_finds_what_is_lost_moved_or_forged(
    tmp_path: Path, audit: Callable[[Path], str]
) -> None:
    report = tmp_path / "r.json"
    of_z5py(tmp_path / "a.n5")
    with z5py.File(str(tmp_path / "a.n5"), "a", use_zarr_format=False) as file:
        file["em/s0"].attrs["offset"] = [11.0, 13.0, 17.0]
    of_java(tmp_path / "c.n5")
    of_ome(tmp_path / "u.zarr")
    copies: Any = {"a.zarr": ("a", {}), "o.zarr": ("a", {"ome": True}), "c.zarr": ("c", {})}
    for copy, (source, options) in copies.items():
        place = tmp_path / f"{source}.n5"
        n5zarr.convert(place, tmp_path / copy, verify=True, report=report, **options)
    n5zarr.convert(tmp_path / "u.zarr", tmp_path / "u.n5", verify=True, report=report)
    assert audit(report) == ""
    for name, (*above, last), value, said in MOVED:
        document = tmp_path / name
        before = document.read_text()
        place = whole = json.loads(before)
        for key in above:
            place = place[key]
        place.pop(last) if value is None else place.update({last: value})
        document.write_text(json.dumps(whole))
        assert f"\n   {said}" in audit(report), (name, last)
        document.write_text(before)
    (run,) = [r for r in json.loads(report.read_text())["runs"] if "a.zarr" in str(r["locations"])]
    opened = ts.open(f"file://{tmp_path}/a.zarr/em/s0/").result()
    opened.write(values := VALUES ^ 1).result()
    forged = hashlib.sha256(values.astype("<u2").tobytes()).hexdigest()
    text = report.read_text()
    changed = json.loads(text)
    for each in changed["runs"]:
        if each["locations"] == run["locations"]:
            each["datasets"][0]["destination"]["sha256"] = forged
    report.write_text(json.dumps(changed))
    assert "\n   values: the report has" in audit(report)


NO_COPIES = {  # the command, and what is said
    "convert a.n5 b.zarr --verify --dry-run": "no finished copy",
    "convert a.n5 b.zarr --part 1/2": "no finished copy",
    "convert missing.n5 b.zarr --verify": "no finished copy",
    "convert a.n5 b.zarr": "no --verify",
    "validate a.n5": "no finished copy",
}


@pytest.mark.parametrize("command", [*NO_COPIES, "moved"])
def test_what_proves_no_copy_is_unchecked_in_one_sentence(
    tmp_path: Path, audit: Callable[[Path], str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_z5py(Path("a.n5"))
    words = "convert a.n5 b.zarr --verify" if command == "moved" else command
    called(*words.split(), "--report", "r.json")
    if command == "moved":
        Path("alone").mkdir()
        shutil.move("r.json", "alone/r.json")
    report = tmp_path / ("alone/r.json" if command == "moved" else "r.json")
    first, _, *said = audit(report).splitlines()
    assert (first, len(said)) == ("UNCHECKED", 1), said
    assert NO_COPIES.get(command, "Failed to detect format") in said[0]
    assert len(said[0]) <= 103


def test_places_that_are_lost_are_told(tmp_path: Path) -> None:
    """A project without its XML is elsewhere."""
    report, project = tmp_path / "r.json", n5zarr.sample_path("bigstitcher")
    said = "axes or positions are not those of the source: setup0/timepoint0/s0: axis z: unit"
    with pytest.warns(N5Warning, match=said):
        done = n5zarr.convert(project, tmp_path / "plain.n5", report=report)
    run = run_of(report)
    assert (done.same_places, run["status"]) == (False, "problems")
    places = {d["path"]: d["places"] for d in run["datasets"]}["setup1/timepoint0/s0"]
    assert places["equal"] is False
    assert [axis["unit"] for axis in places["source"]["axes"]] == ["um"] * 3
    assert [axis["unit"] for axis in places["destination"]["axes"]] == [None] * 3
    views = [f"setup{v['setup']}/timepoint{v['timepoint']}" for v in run["views"]]
    assert sorted(views) == sorted({d["path"].rpartition("/")[0] for d in run["datasets"]})
    assert run["views"][0]["size_n5"] == [61, 53, 11]
    line = "convert", project, "--into", tmp_path / "many", "--report", report
    status, printed = called(*line)
    assert (status, printed.split()[-4:]) == (1, ["location:", "1", "with", "problems"]), printed
    kept: Any = {"new/d.xml": {"to": "n5"}, "o/d.xml": {"to": "ome-zarr"}, "o.zarr": {"ome": True}}
    for name, options in kept.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        assert n5zarr.convert(project, tmp_path / name, report=report, **options).same_places, name


def test_channels_and_labels_are_places_too(tmp_path: Path) -> None:
    source, report = tmp_path / "a.zarr", tmp_path / "r.json"
    places: Any = {"axes": ["c", "y", "x"], "units": ["", "um", "um"]}
    n5zarr.create_array(tmp_path / "b.n5", path="em/s0", data=VALUES, **places)
    n5zarr.convert(tmp_path / "b.n5", source, ome=True)
    document = source / "em/zarr.json"
    whole = json.loads(document.read_text())
    window = {"min": 0, "max": 9, "start": 0, "end": 9}
    channels = [{"label": name, "color": "FF0000", "window": window} for name in "rgb"]
    whole["attributes"]["ome"] |= {"omero": {"channels": channels}, "image-label": {}}
    document.write_text(json.dumps(whole))
    assert n5zarr.convert(source, tmp_path / "c.n5", report=report).same_places
    (dataset,) = run_of(report)["datasets"]
    for side in ("source", "destination"):
        assert dataset["places"][side]["channels"] == ["r", "g", "b"]
        assert dataset["places"][side]["labels"] is True


def test_parts_are_no_finished_copy_and_the_end_has_the_hash(
    tmp_path: Path, audit: Callable[[Path], str]
) -> None:
    for name in ("a.n5", "b.n5"):
        of_z5py(tmp_path / name)
    report = tmp_path / "r.json"
    line = ("convert", tmp_path / "a.n5", tmp_path / "b.n5", "--into", tmp_path / "out")
    for part in ("1/2", "2/2"):
        status, printed = called(*line, "--part", part, "--report", report)
        first, _, last = printed.splitlines()
        assert (status, first.split()[0], last) == (0, "part", "2 locations: 2 in part")
        assert f"part {part} has ended; when all have, the same command with --finish" in first
        assert json.loads(report.read_text())["status"] == "part"
    status, printed = called(*line, "--finish", "--report", report)
    assert (status, printed.splitlines()[-1]) == (0, "2 locations: 2 ok")
    whole = json.loads(report.read_text())
    assert [run["status"] for run in whole["runs"]] == ["ok", "ok", *["part"] * 4]
    assert (whole["status"], whole["runs"][0]["result"]) == ("ok", {"verified": True})
    assert audit(report) == ""


def test_an_old_report_with_whole_paths_goes_on(tmp_path: Path) -> None:
    of_tensorstore(tmp_path / "a.n5")
    report = tmp_path / "r.json"
    line = (
        "convert",
        tmp_path / "a.n5",
        "--into",
        tmp_path / "out",
        "--verify",
        "--report",
        report,
    )
    assert called(*line)[0] == 0
    old = json.loads(report.read_text())
    places = old["runs"][0]["locations"]
    assert places == {"source": "a.n5", "destination": "out/a.zarr"}
    whole = {name: str(tmp_path.resolve() / place) for name, place in places.items()}
    run = old["runs"][0] | {"locations": whole}
    report.write_text(json.dumps(old | {"n5zarr_report": 1, "runs": [run]}))
    assert "compared by an earlier run" in called(*line)[1]
    assert json.loads(report.read_text())["runs"] == old["runs"]


def test_a_report_knows_arrays_without_elements(tmp_path: Path) -> None:
    report, source = tmp_path / "r.json", DATA / "java/sparse.n5"
    n5zarr.convert(source, tmp_path / "a.zarr", select="zerodim", report=report)
    (dataset,) = run_of(report)["datasets"]
    assert dataset["source"]["sha256"] == hashlib.sha256().hexdigest()


def test_data_without_an_image_name_the_option_that_copies_them(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "a.n5", path="t", data=np.arange(13))
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "a.zarr")
    for name, said in (("a.n5", "--to zarr"), ("a.zarr", "without it, arrays are copied")):
        with pytest.raises(N5UnrepresentableError, match=said):
            n5zarr.convert(tmp_path / name, tmp_path / "o.zarr", ome=True)


def test_a_copy_whose_places_cannot_be_read_is_complete(tmp_path: Path) -> None:
    """Zarr whose name is that of N5 is no copy that n5zarr opens by its name."""
    report = tmp_path / "r.json"
    with pytest.warns(N5Warning, match="axes and positions are not in the report: .*expected N5"):
        done = n5zarr.convert(n5zarr.sample_path(), tmp_path / "a.n5", to="zarr", report=report)
    run = run_of(report)
    assert (done.same_places, run["status"]) == (None, "ok")
    assert not any("places" in dataset for dataset in run["datasets"])
