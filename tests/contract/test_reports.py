"""Reports tell what was read and written, and several sources are converted or checked at once.

Hashes are compared with numpy and hashlib alone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.rooms import ADDED
from n5zarr.storage.writing import FileWriter
from n5zarr.tools.evidence.report import Report
from tests.command import CliRunner, printed
from tests.programs import Programs

RANDOM = np.random.default_rng(7)
VALUES: dict[str, np.ndarray[Any, Any]] = {
    "u2": RANDOM.integers(0, 2**16, (7, 11, 13)).astype(">u2"),
    "f8": RANDOM.normal(size=(17, 5)),
    "bool": RANDOM.random((3, 19, 2)) > 0.5,
    "i8": RANDOM.integers(-9, 9, 23).astype("int64"),
}


def run_of(report: Path) -> Any:
    """Return the newest run."""
    return json.loads(report.read_text())["runs"][0]


def hash_of(values: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes()).hexdigest()


def called(*words: object) -> tuple[int, list[str]]:
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, result.output.splitlines()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a container with arrays of several types and prime shapes."""
    there = tmp_path_factory.mktemp("template") / "made.n5"
    for name, values in VALUES.items():
        chunks = tuple(max(2, n // 3) for n in values.shape)
        n5zarr.create_array(there, path=f"g/{name}", data=values, chunks=chunks)
    return there


@pytest.fixture
def made(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "made.n5")


@pytest.fixture
def several(made: Path) -> list[Path]:
    """Return five containers: the second has a damaged block, the fourth lacks one."""
    places = [made.parent / f"{name}.n5" for name in "abcde"]
    for place in places:
        shutil.copytree(made, place)
    (places[1] / "g/u2/0/0/0").write_bytes(b"x")
    (places[3] / "g/u2/0/0/0").unlink()
    return places


@pytest.mark.each_of(2)
@pytest.mark.parametrize(
    ("out", "options"),
    [
        ("out.n5", {}), ("out.n5", {"chunks": 3}), ("out.zarr", {}), ("out.zarr", {"to": "zarr2"}),
        ("out.zarr", {"chunks": 2, "shards": 4}),
    ],
    ids=str,
)  # fmt: skip
def test_hashes_are_those_of_numpy(made: Path, out: str, options: Any) -> None:
    report = made.parent / "report.json"
    # in slabs of less than a chunk, too
    n5zarr.convert(made, made.parent / out, report=report, verify=True, max_memory=512, **options)
    run = run_of(report)
    assert run["status"] == "ok"
    assert run["options"]["verify"] is True
    for dataset in run["datasets"]:
        values = VALUES[dataset["path"].removeprefix("g/")]
        assert dataset["shape"] == [*values.shape] == dataset["dimensions"][::-1]
        for side in (dataset["source"], dataset["destination"]):
            assert side["sha256"] == hash_of(values)
            assert side["blocks"] == side["blocks_stored"]
            assert np.dtype(side["data_type"]) == values.dtype.newbyteorder("=")
    stored = [p for p in (made / "g/u2").rglob("*") if p.is_file() and p.name != "attributes.json"]
    (of_u2,) = (d["source"] for d in run["datasets"] if d["path"] == "g/u2")
    assert of_u2["bytes_stored"] == sum(p.stat().st_size for p in stored)


def test_sources_of_zarr_and_archives_are_described(made: Path) -> None:
    n5zarr.convert(made, made.parent / "a.zarr", chunks=2, shards=4)
    shutil.make_archive(str(made.parent / "a.zarr"), "zip", made.parent / "a.zarr")
    report = made.parent / "report.json"
    for name in ("a.zarr", "a.zarr.zip"):
        n5zarr.convert(made.parent / name, made.parent / f"{name}.n5", report=report)
        for dataset in run_of(report)["datasets"]:
            values = VALUES[dataset["path"].removeprefix("g/")]
            assert dataset["source"]["sha256"] == hash_of(values)
            assert dataset["destination"]["sha256"] is None


def test_what_is_no_array_of_numbers_is_named(tmp_path: Path) -> None:
    text = zarr.create_array(tmp_path / "a.zarr", shape=3, dtype="str")
    text[:] = np.array(["a", "bb", ""], object)
    n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5", report=tmp_path / "r.json")
    (dataset,) = run_of(tmp_path / "r.json")["datasets"]
    assert dataset["source"]["sha256"] is None
    assert "no plain array" in dataset["source"]["note"]
    assert n5zarr.compare(tmp_path / "a.zarr", tmp_path / "a.zarr").is_equal


def test_failures_and_what_is_left_out_are_reported(several: list[Path]) -> None:
    report = several[0].parent / "report.json"
    with pytest.raises(N5Error):  # hashing decodes what is passed through
        n5zarr.convert(several[1], several[1].with_suffix(".zarr"), report=report)
    run = run_of(report)
    assert run["status"] == json.loads(report.read_text())["status"] == "failed"
    assert "g/u2: block 0/0/0" in run["error"]["message"]
    assert [d["path"] for d in run["datasets"]] == sorted(f"g/{name}" for name in VALUES)
    n5zarr.convert(several[0], several[0].with_suffix(".zarr"), level=0, report=report)
    assert run_of(report)["skipped"] == []
    with pytest.raises(FileNotFoundError):
        n5zarr.validate(several[0] / "none", report=report)
    assert run_of(report)["status"] == "failed"


def test_secrets_are_left_out(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = {"key": "me", "token": "ticket", "anon": True}
    with pytest.raises((OSError, N5Error)):  # nothing is there
        n5zarr.validate("memory://none/a.n5?sig=signature", storage_options=options, report=report)
    text = report.read_text()
    assert run_of(report)["options"]["storage_options"] == {
        "key": "***", "token": "***", "anon": True,
    }  # fmt: skip
    assert "ticket" not in text


def test_checks_and_comparisons_are_reported(several: list[Path]) -> None:
    report = several[0].parent / "report.json"
    n5zarr.validate(several[1], deep=True, report=report)
    run = run_of(report)
    assert run["status"] == "problems"
    assert [f["kind"] for f in run["findings"]] == ["header"]
    (damaged,) = (d["location"] for d in run["datasets"] if d["location"]["sha256"] is None)
    assert "block 0/0/0" in damaged["note"]
    n5zarr.compare(several[0], several[3], report=report)
    run = run_of(report)
    assert [d["what"] for d in run["differences"]] == ["values"]
    of_u2 = next(d for d in run["datasets"] if d["path"] == "g/u2")
    assert of_u2["first"]["sha256"] == hash_of(VALUES["u2"]) != of_u2["second"]["sha256"]
    assert of_u2["second"]["blocks_stored"] == of_u2["second"]["blocks"] - 1
    n5zarr.convert(f"{n5zarr.sample_path()}/em", ome := several[0].parent / "em.zarr", ome=True)
    n5zarr.compare(f"{n5zarr.sample_path()}/em", ome, report=report)
    for dataset in run_of(report)["datasets"]:
        assert dataset["first"]["sha256"] == dataset["second"]["sha256"] is not None
        assert dataset["first"]["bytes_stored"] > 0
        assert dataset["second"]["bytes_stored"] > 0


def test_a_run_removes_what_a_killed_one_was_writing_of_its_report(made: Path) -> None:
    report, hexadecimal = made.parent / "report.json", "0123456789abcdef" * 2
    left, other = (report.parent / f"{n}.json.{hexadecimal}.partial" for n in ("report", "other"))
    for file in (left, other):
        file.write_bytes(b"{")

    def changed(old: bytes | None) -> bytes | None:
        """Begin a run while another writer holds the report; its file stays until it has ended."""
        theirs = report.parent / f"report.json.{hexadecimal[::-1]}.partial"
        theirs.write_bytes(b"{")
        run = threads.submit(n5zarr.validate, made, report=report)
        with pytest.raises(TimeoutError):
            run.result(0.5)
        assert theirs.exists()
        runs.append(run)
        return old

    runs: list[Future[Any]] = []
    n5zarr.validate(made, report=report)
    with ThreadPoolExecutor(1) as threads:
        FileWriter("atomic", pytest.fail).update(str(report), changed)
        assert runs[0].result().ok
    assert list(report.parent.glob("*.partial")) == [other]


@pytest.mark.parametrize("name", ["report.txt", "report.html", "none/report.json"])
def test_a_wrong_name_of_a_report_is_an_error_at_once(made: Path, name: str) -> None:
    with pytest.raises(N5Error, match="report"):
        n5zarr.convert(made, made.parent / "out.zarr", report=made.parent / name)
    assert not (made.parent / "out.zarr").exists()


def test_a_report_names_the_package_that_it_lacks(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {**ADDED["step"], "report": "n5zarr.tools.nowhere.report:Report"}
    monkeypatch.setattr("n5zarr.rooms.ADDED", {**ADDED, "step": steps})
    out, report = made.parent / "out.zarr", made.parent / "report.json"
    lacking = "report: expected the package n5zarr.tools.nowhere, which this copy of n5zarr lacks"
    for call in (n5zarr.convert, n5zarr.compare, n5zarr.validate):
        places = (made,) if call is n5zarr.validate else (made, out)
        with pytest.raises(N5UnsupportedError, match=lacking):
            call(*places, report=report)
    for words in (("validate", made), ("validate", made, made), ("convert", made, out)):
        status, lines = called(*words, "--report", report)
        assert status == 2
        assert lacking in " ".join(lines)
    assert not out.exists()
    assert not report.exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_chunk_of_an_array_without_axes_is_counted(tmp_path: Path, zarr_format: Any) -> None:
    array = zarr.create_array(tmp_path / "a.zarr", shape=(), dtype="f8", zarr_format=zarr_format)
    array[...] = 2.5
    report = tmp_path / "r.json"
    n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5", expect_complete=True, report=report)
    (dataset,) = run_of(report)["datasets"]
    assert dataset["source"]["blocks"] == dataset["source"]["blocks_stored"] == 1
    assert dataset["source"]["sha256"] == hash_of(np.array(2.5))


def test_blocks_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = RANDOM.integers(0, 9, (32, 32, 32)).astype("u2")
    n5zarr.create_array(tmp_path / "a.n5", path="a", data=values, chunks=(8, 8, 8))
    read: list[Any] = []

    def counted(array: Any, box: Any) -> Any:
        read.append(box)
        return array[box]

    monkeypatch.setattr("n5zarr.tools.evidence.report.read_on_host", counted)
    report = tmp_path / "r.json"
    # memory holds a row of blocks, and no layer of them
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "a.zarr", report=report, max_memory=2**14)
    assert run_of(report)["datasets"][0]["source"]["sha256"] == hash_of(values)
    assert all(part.start % 8 == 0 for box in read for part in box)
    assert len(read) > 4


def test_lost_blocks_are_refused_before_anything_is_written(several: list[Path]) -> None:
    out = several[3].with_suffix(".zarr")
    status, lines = called("convert", several[3], out, "--expect-complete")
    assert status == 1
    assert "/g/u2 lacks 1 of" in lines[0]
    assert not out.exists()
    assert called("convert", several[0], out, "--expect-complete")[0] == 0
    n5zarr.convert(several[3], out, overwrite=True, verify=True)


def test_a_finished_copy_of_a_source_with_gaps_is_not_complete(made: Path) -> None:
    """What an earlier run without the option has copied counts only if nothing is missing."""
    copied = "convert", made, "--into", made.parent / "out"
    assert called(*copied)[0] == 0
    status, lines = called(*copied, "--expect-complete")
    assert (status, "/g/u2 lacks 1 of" in lines[0]) == (0, False)
    next((made / "g/u2").glob("*/*/*")).unlink()
    status, lines = called(*copied, "--expect-complete")
    assert status == 1
    assert "/g/u2 lacks 1 of" in lines[0]


def test_a_lost_document_is_no_complete_source(made: Path) -> None:
    """Blocks whose dataset has no document are named, and nothing at all is said."""
    (made / "g/u2/attributes.json").unlink()
    out = made.parent / "out.zarr"
    status, lines = called("convert", made, out, "--expect-complete")
    assert status == 1
    assert re.search(r"/g/u2/\d/\d/\d is a block whose dataset has no document", lines[0])
    for name in ("f8", "bool", "i8"):
        shutil.rmtree(made / "g" / name)
    with pytest.raises(N5Error, match="there are no arrays"):
        n5zarr.convert(made, out, expect_complete=True)
    assert not out.exists()
    with pytest.warns(N5Warning, match="expected arrays, got none"):
        n5zarr.convert(made, out)


def test_a_report_grows_and_no_other_file_is_replaced(made: Path) -> None:
    report, out = made.parent / "report.json", made.parent / "out.zarr"
    n5zarr.convert(made, out, report=report)
    n5zarr.validate(made, report=report)
    n5zarr.compare(made, out, report=report)
    found = json.loads(report.read_text())
    assert [run["command"] for run in found["runs"]] == ["diff", "validate", "convert"]
    n5zarr.validate(made, report=report)
    assert len(json.loads(report.read_text())["runs"]) == 3
    document = made / "g/u2/attributes.json"
    before = document.read_bytes()
    with pytest.raises(N5UnrepresentableError, match="expected a report of version 1 or 2"):
        n5zarr.validate(made, report=document)
    assert document.read_bytes() == before


def test_a_dry_run_is_no_evidence(made: Path) -> None:
    report, out = made.parent / "report.json", made.parent / "out"
    line = ("convert", made, "--into", out, "--verify", "--report", report)
    assert called(*line[:4])[0] == 0
    assert called(*line, "--dry-run")[0] == 0
    chunk = next(p for p in (out / "made.zarr/g/f8/c").rglob("*") if p.is_file())
    chunk.unlink()
    assert called(*line)[0] == 1
    shutil.rmtree(out)
    assert called(*line)[0] == 0
    assert called(*line, "--dry-run")[0] == 0
    runs = json.loads(report.read_text())["runs"]
    copied = [d["destination"] for run in runs for d in run["datasets"] if "destination" in d]
    hashes = sorted(map(hash_of, VALUES.values()))
    assert sorted(each["sha256"] for each in copied) == hashes  # the dry run has replaced none


def test_reports_of_two_processes_become_one(made: Path) -> None:
    report = made.parent / "report.json"
    other = Report(report, is_shared=True)
    n5zarr.convert(made, made.parent / "a.zarr", report=report)
    n5zarr.convert(made, made.parent / "b.zarr", report=other)
    other.end()
    found = json.loads(report.read_text())
    assert len(found["runs"]) == 2
    assert found["status"] == "ok"
    for text in (report.read_text()[:500], '{"n5zarr_report": 1, "runs": "abc"}', "{}"):
        report.write_text(text)
        with pytest.raises(N5UnrepresentableError, match="expected a report of version 1 or 2"):
            n5zarr.validate(made, report=report)
        assert report.read_text() == text


def test_warnings_are_reported_and_shown(tmp_path: Path) -> None:
    report, image = tmp_path / "report.json", tmp_path / "image.zarr"
    n5zarr.convert(f"{n5zarr.sample_path()}/em", image, ome=True, ome_version="0.4")
    with pytest.warns(N5Warning, match=r"OME-Zarr 0\.4 or earlier.*no program finds") as shown:
        n5zarr.convert(image, tmp_path / "plain.zarr", report=report)
    assert run_of(report)["warnings"] == [str(each.message) for each in shown]


def test_sizes_of_images_are_those_of_their_files(made: Path) -> None:
    image, report = made.parent / "image.zarr", made.parent / "report.json"
    source = n5zarr.sample_path()
    n5zarr.convert(source, image, to="ome-zarr")
    n5zarr.compare(source, image, report=report)
    sides = {d["path"]: d["second"]["bytes_stored"] for d in run_of(report)["datasets"]}
    for path, size in sides.items():
        assert size == sum(p.stat().st_size for p in (image / path / "c").rglob("*") if p.is_file())
    assert len(sides) == 4


def test_many_are_converted_and_the_second_run_goes_on(several: list[Path]) -> None:
    out, report = several[0].parent / "out", several[0].parent / "report.json"
    line = ("convert", *several, "--into", out, "--report", report)
    status, lines = called(*line)
    assert status == 1
    assert [text.split()[0] for text in lines] == ["ok", "failed", "ok", "ok", "ok", "5"]
    first = json.loads(report.read_text())
    assert [run["status"] for run in first["runs"]] == ["ok", "failed", "ok", "ok", "ok"]
    shutil.copy(several[0] / "g/u2/0/0/0", several[1] / "g/u2/0/0/0")
    status, lines = called(*line)
    assert status == 0
    assert ["by an earlier run" in text for text in lines] == [True, False, True, True, True, False]
    again = json.loads(report.read_text())
    assert again["runs"][0] == first["runs"][0]
    assert len(again["runs"]) == 5
    assert sorted(p.name for p in out.iterdir()) == [f"{name}.zarr" for name in "abcde"]
    assert called("convert", *several, "--into", out)[1][-1] == "5 locations: 5 ok"


KILLED = """
import os, sys, n5zarr
from n5zarr.cli import convert
whole = n5zarr.convert
def some(source, destination, **options):
    if "c.n5" in source and not options.get("dry_run"):
        def killed(stage, done, total):
            os._exit(9)
        options["progress"] = killed
    return whole(source, destination, **options)
n5zarr.convert = some
from n5zarr.cli.app import app
app()
"""


def test_a_killed_run_goes_on(programs: Programs, several: list[Path]) -> None:
    out, report = several[0].parent / "out", several[0].parent / "report.json"
    places = [several[0], several[2], several[4]]
    line = [*map(str, ("convert", *places, "--into", out, "--verify", "--report", report))]
    done = programs.run(KILLED, *line)
    assert done.returncode == 9, done.stderr
    assert json.loads(report.read_text())["status"] == "running"
    status, lines = called(*line)
    assert status == 0
    assert ["by an earlier run" in text for text in lines] == [True, False, False, False]
    runs = json.loads(report.read_text())["runs"]
    for run in runs:
        for dataset in run["datasets"]:
            values = VALUES[dataset["path"].removeprefix("g/")]
            assert dataset["destination"]["sha256"] == hash_of(values)
    assert len(runs) == 3


def test_a_full_disk_stops_one_of_many(
    several: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = n5zarr.convert

    @wraps(whole)  # the command may be made from it
    def full(source: Any, destination: Any, **options: Any) -> Any:
        if "b.n5" in str(source):
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(source, destination, **options)

    monkeypatch.setattr(n5zarr, "convert", full)
    status, lines = called("convert", *several[:3], "--into", several[0].parent / "out")
    assert status == 1
    assert [text.split()[0] for text in lines] == ["ok", "failed", "ok", "3"]
    report = several[0].parent / "report.json"
    lines = called("convert", several[0].parent / "none.n5", "--into", "out", "--report", report)[1]
    assert [text.split()[0] for text in lines] == ["failed", "1"]
    assert run_of(report)["status"] == json.loads(report.read_text())["status"] == "failed"


def test_names_are_told_apart_before_anything_is_written(several: list[Path]) -> None:
    out = several[0].parent / "out"
    other = several[0].parent / "other" / "a.n5"
    shutil.copytree(several[0], other)
    status, lines = called("convert", several[0], other, "--into", out)
    assert status == 2
    assert "names of their own" in lines[0]
    assert not out.exists()
    assert called("convert", several[0])[0] == 2
    assert called("validate", *several, "--clean")[0] == 2


def test_many_are_checked(several: list[Path]) -> None:
    report = several[0].parent / "report.json"
    status, lines = called("validate", *several, "--report", report)
    assert status == 1
    assert [text.split()[0] for text in lines] == ["ok", "problems", "ok", "ok", "ok", "5"]
    assert json.loads(report.read_text())["status"] == "problems"
    kept = json.loads(report.read_text())
    kept["status"] = "running"  # as of a killed run
    report.write_text(json.dumps(kept))
    assert "interrupted run" in called("validate", *several, "--report", report)[1][0]
    assert "interrupted run" not in called("validate", *several, "--report", report)[1][0]


def test_an_xml_and_other_formats_may_be_among_many(made: Path, tmp_path: Path) -> None:
    xml = n5zarr.sample_path("bigstitcher")
    n5zarr.convert(made, tmp_path / "z.zarr")
    printed("convert", xml, tmp_path / "z.zarr", "--into", tmp_path / "o", "--to", "n5")
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == [f"{Path(xml).stem}.n5", "z.n5"]
    assert n5zarr.compare(xml, tmp_path / "o" / f"{Path(xml).stem}.n5", images=False).n_arrays == 30


def test_rare_options_have_a_help_of_their_own() -> None:
    short, full = (called("convert", option)[1] for option in ("--help", "--help-all"))
    assert len(short) <= 70
    assert not any("--max-memory" in text for text in short)
    assert any("--max-memory" in text for text in full)
