"""Every function and command takes every kind of location, but for those that the table names.

The table of docs/support.md lists the same exceptions with their reasons.
"""

from __future__ import annotations

import inspect
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import xarray as xr
from typer.core import TyperGroup
from typer.main import get_command
from zarr.storage import LocalStore

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnsupportedError
from tests.command import CliRunner

# kinds whose blocks of N5 are stored
STORED = {"N5", "N5Store", "zarr store", "URL", "pipeline", "archive", "XML"}
SHOWN = {
    *("OME-Zarr 0.5", "OME-Zarr 0.4", "OME-Zarr image", "OME-Zarr URL", "OME-Zarr store"),
    *("OME-Zarr without suffix", "XML of OME-Zarr"),
}
KINDS = sorted(STORED | SHOWN)
READ_ONLY = {*SHOWN, "archive"}
TEXTS = [kind for kind in KINDS if "tore" not in kind]  # that a command can take
SHAPE = 7, 11, 13

type Where = tuple[Any, str, str]
"""A location, the group of an image below it, and a dataset."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Where]:
    there = tmp_path_factory.mktemp("places")
    n5 = there / "a.n5"
    values = np.arange(np.prod(SHAPE)).reshape(SHAPE).astype("uint16")
    for level, step in enumerate((1, 2)):
        n5zarr.create_array(
            n5, path=f"em/s{level}", data=values[::step, ::step, ::step], chunks=(2, 3, 5),
            axes=("z", "y", "x"), units=("nm",) * 3, resolution=(step,) * 3,
        )  # fmt: skip
    n5zarr.convert(n5, there / "o5.zarr", ome=True)
    n5zarr.convert(n5, there / "o4.zarr", ome=True, ome_version="0.4")
    shutil.copytree(there / "o5.zarr", there / "other")
    shutil.make_archive(str(n5), "zip", there, "a.n5")
    shutil.copytree(Path(n5zarr.sample_path("bigstitcher")).parent, there / "project")
    xml = there / "project" / "dataset.xml"
    n5zarr.convert(xml, there / "ome.xml", to="ome-zarr")
    memory = fsspec.filesystem("memory")
    for name in ("a.n5", "o5.zarr"):
        memory.put(str(there / name), f"/places/{name}", recursive=True)
    image, views = ("em", "em/s0"), ("setup0/timepoint0", "setup0/timepoint0/s0")
    return {
        "N5": (n5, *image),
        "N5Store": (n5zarr.N5Store(n5), *image),
        "zarr store": (LocalStore(n5), *image),
        "URL": ("memory://places/a.n5", *image),
        "pipeline": (f"file://{n5}|n5:", *image),
        "XML": (xml, *views),
        "archive": (f"file://{there / 'a.n5.zip'}|zip:a.n5|n5:", *image),
        "OME-Zarr 0.5": (there / "o5.zarr", *image),
        "OME-Zarr 0.4": (there / "o4.zarr", *image),
        "OME-Zarr image": (there / "o5.zarr" / "em", "", "s0"),
        "OME-Zarr URL": ("memory://places/o5.zarr", *image),
        "OME-Zarr store": (LocalStore(there / "o5.zarr"), *image),
        "OME-Zarr without suffix": (there / "other", *image),
        "XML of OME-Zarr": (there / "ome.xml", *views),
    }


READING: dict[str, Callable[[Any, str, str, Path], object]] = {
    "open": lambda at, group, path, out: n5zarr.open(at, path=path),
    "open_array": lambda at, group, path, out: n5zarr.open_array(at, path=path)[:1],
    "open_group": lambda at, group, path, out: n5zarr.open_group(at, path=group),
    "open_datatree": lambda at, group, path, out: xr.open_datatree(at, engine="n5"),
    "geometry": lambda at, group, path, out: n5zarr.geometry(at, path),
    "pyramid_levels": lambda at, group, path, out: n5zarr.pyramid_levels(at, group),
    "open_level": lambda at, group, path, out: n5zarr.open_level(at, path=group, level=0),
    "get_attribute": lambda at, group, path, out: n5zarr.get_attribute(at, path, "dimensions"),
    "block_statistics": lambda at, group, path, out: n5zarr.block_statistics(at, path),
    "stored_blocks": lambda at, group, path, out: next(n5zarr.stored_blocks(at, path)),
    "Crops": lambda at, group, path, out: n5zarr.Crops(
        {"em": (n5zarr.open_array(at, path=path), (2, 3, 5))}, 2
    )[1],
    "validate": lambda at, group, path, out: n5zarr.validate(at),
    "find_problems": lambda at, group, path, out: [*n5zarr.find_problems(at)],
    "compare": lambda at, group, path, out: n5zarr.compare(at, at),
    "convert": lambda at, group, path, out: n5zarr.convert(at, out / "out.zarr"),
    "convert_to_n5": lambda at, group, path, out: n5zarr.convert(at, out / "out.n5"),
    "download": lambda at, group, path, out: n5zarr.download(at, out / "out.n5"),
    "thumbnail": lambda at, group, path, out: n5zarr.thumbnail(at),
    "plot": lambda at, group, path, out: n5zarr.plot(at),
    "napari_layers": lambda at, group, path, out: n5zarr.napari_layers(at),
    "build_pyramid_to": lambda at, group, path, out: n5zarr.build_pyramid(
        at, path, to=f"{out}/out.n5/em"
    ),
    "serve": lambda at, group, path, out: n5zarr.serve(at, port=0).close(),
    "view": lambda at, group, path, out: n5zarr.view(at, port=0).close(),
}  # fmt: skip
BLOCKS: dict[str, Callable[[Any, str, str, Path], object]] = {
    "read_block": lambda at, group, path, out: n5zarr.read_block(at, path, (0, 0, 0)),
    "virtualize": lambda at, group, path, out: n5zarr.virtualize(
        at, out / "out.json", url="file:///elsewhere"
    ),
}  # fmt: skip
WRITING: dict[str, Callable[[Any, str, str], object]] = {
    "set_attribute": lambda at, group, path: n5zarr.set_attribute(at, path, "a", 1),
    "remove_attribute": lambda at, group, path: n5zarr.remove_attribute(at, path, "a"),
    "create_array": lambda at, group, path: n5zarr.create_array(
        at, path="new", shape=SHAPE, dtype="uint8"
    ),
    "open": lambda at, group, path: n5zarr.open(at, "r+", path=path),
    "open_group": lambda at, group, path: n5zarr.open_group(at, "w", path="new"),
    "set_geometry": lambda at, group, path: n5zarr.set_geometry(at, path, scale=(3, 5, 7)),
    "remove_empty_blocks": lambda at, group, path: n5zarr.remove_empty_blocks(at, path),
    "repair_edges": lambda at, group, path: n5zarr.repair_edges(at, path, to="truncate"),
    "clean_leftovers": lambda at, group, path: n5zarr.clean_leftovers(at, ()),
    "to_n5": lambda at, group, path: n5zarr.to_n5(xr.DataArray(np.zeros(3)), at, group="new"),
    "write_block": lambda at, group, path: n5zarr.write_block(
        at, path, (0, 0, 0), np.zeros((2, 3, 5), "uint16")
    ),
    "rechunk": lambda at, group, path: n5zarr.rechunk(at, path, compression="raw"),
    "quarantine_blocks": lambda at, group, path: n5zarr.quarantine_blocks(at, ()),
}  # fmt: skip
COMMANDS = (
    "tree --size {at}",
    "tree --json {group}",
    "info --stats --verify {path}",
    "info {at}",
    "attrs {path} dimensions",
    "validate {at}",
    "diff {at} {at}",
    "convert {at} {out}/out.zarr",
    "convert {path} {out}/out.n5",
    "download {at} {out}/out.n5",
    "thumbnail {at} -o {out}/out.png",
    "pyramid {path} --to {out}/out.n5/em",
    "serve {at}",
    "view {at} --no-browser",
    "convert {at} --into {out}/into --verify --report {out}/report.json",
    "validate {at} --deep --report {out}/validated.json",
    "diff {at} {at} --report {out}/report.json",
)
COMMAND_OF_BLOCKS = "virtualize {at} {out}/out.json --url file:///elsewhere"
# by what is written in place, and leaves what other tests need: the kinds that refuse it
WRITING_COMMANDS = {
    "attrs {path} a 1": READ_ONLY,
    "attrs {path} a --remove": READ_ONLY,
    "validate {at} --repair-edges pad --yes": READ_ONLY,
    "rm-empty {at}": READ_ONLY,
    "rechunk {path} --compression raw": {*READ_ONLY, "URL"},
    "pyramid {group} --levels 1 --overwrite": {"archive", "XML of OME-Zarr"},
}


@pytest.mark.each_of(13)  # each function, and all kinds in turn
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READING)
def test_reading_takes_any_location(
    places: dict[str, Where], kind: str, name: str, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ours, and zarr's of METADATA.ome.xml
        READING[name](*places[kind], tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_positions_are_the_same(places: dict[str, Where], kind: str) -> None:
    at, _, path = places[kind]
    names = ("XML", "XML of OME-Zarr") if "XML" in kind else ("N5", kind)
    expected = n5zarr.open_array(places[names[0]][0], path=places[names[0]][2])[:]
    np.testing.assert_array_equal(n5zarr.open_array(at, path=path)[:], expected)
    assert n5zarr.geometry(at, path).scale == n5zarr.geometry(*places[names[0]][::2]).scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_n5_must_be_stored(
    places: dict[str, Where], kind: str, name: str, tmp_path: Path
) -> None:
    if kind in SHOWN:
        with pytest.raises(N5UnsupportedError, match=r"stored blocks of N5.*zarr\.open"):
            BLOCKS[name](*places[kind], tmp_path)
    else:
        BLOCKS[name](*places[kind], tmp_path)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("kind", sorted(READ_ONLY))
@pytest.mark.parametrize("name", WRITING)
def test_writing_in_place_names_the_way_out(places: dict[str, Where], kind: str, name: str) -> None:
    with pytest.raises(N5UnsupportedError, match=r"n5zarr\.convert copies it") as caught:
        WRITING[name](*places[kind])
    assert caught.value.kind == "read-only"


@pytest.mark.parametrize("name", READING)
def test_hdf5_and_tiff_are_for_convert(name: str, tmp_path: Path) -> None:
    if "convert" in name:
        return
    file = tmp_path / "a.h5"
    file.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises((FileNotFoundError, n5zarr.N5Error), match="n5zarr convert"):
        READING[name](file, "em", "em/s0", tmp_path)


@pytest.fixture
def run(
    places: dict[str, Where], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], tuple[int, str]]:
    """Run a command for a kind of location; return the exit status, and what it prints."""
    monkeypatch.setattr(n5zarr.Server, "is_running", False)  # ends at once

    def run(line: str, kind: str) -> tuple[int, str]:
        at, *nodes = places[kind] if kind in places else (tmp_path / kind, "em", "em/s0")
        group, path = (f"{at}{'' if str(at).endswith(':') else '/'}{node}" for node in nodes)
        words = line.format(at=at, group=group, path=path, out=tmp_path).split()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            result = CliRunner().invoke(app, words)
        return result.exit_code, result.output

    return run


@pytest.mark.each_of(9)  # as above
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("line", COMMANDS)
def test_commands_take_any_location(run: Any, kind: str, line: str) -> None:
    status, printed = run(line, kind)
    loses_places = "--into" in line and kind.startswith("XML")  # of which the report tells
    assert status == loses_places, printed
    assert ("axes or positions are not those" in printed) == loses_places


@pytest.mark.parametrize("kind", TEXTS)
def test_a_command_of_blocks_says_how_to_read_others(run: Any, kind: str) -> None:
    status, printed = run(COMMAND_OF_BLOCKS, kind)
    assert status == (2 if kind in SHOWN else 0), printed
    assert ("zarr.open reads it" in printed) == (kind in SHOWN)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("kind", TEXTS)
def test_commands_that_write_in_place_name_the_way_out(run: Any, kind: str) -> None:
    for line, refusing in WRITING_COMMANDS.items():
        status, printed = run(line, kind)
        assert status == (2 if kind in refusing else 0), printed
        assert ("n5zarr.convert" in printed) == (kind in refusing)


@pytest.mark.parametrize("line", [*COMMANDS, COMMAND_OF_BLOCKS, *WRITING_COMMANDS])
def test_commands_name_convert_for_hdf5_and_tiff(run: Any, line: str, tmp_path: Path) -> None:
    if line.startswith("convert"):
        return
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    status, printed = run(line, "a.h5")
    assert status == 2
    assert "n5zarr convert" in printed


def exceptions() -> set[str]:
    """Return the names in the first column of the table."""
    page = Path("docs/support.md").read_text(encoding="utf-8")
    rows = page.partition("## Locations")[2].partition("\n## ")[0]
    cells = re.findall(r"^\|([^|]*)", rows, re.MULTILINE)
    return {*re.findall("`(.*?)`", " ".join(cells))}


def test_each_function_with_a_location_is_walked() -> None:
    """A new function joins one of the lists, or is an exception in docs/support.md."""
    takes = {
        name
        for name in n5zarr.__all__
        if inspect.isfunction(function := getattr(n5zarr, name))
        and any(
            "Location" in str(p.annotation) for p in inspect.signature(function).parameters.values()
        )
    }
    walked = {name.removesuffix("_to_n5").removesuffix("_to") for name in READING}
    assert not takes - walked - {*BLOCKS, *WRITING} - exceptions()


def commands(group: Any, above: str = "") -> Iterator[str]:
    """Name the commands that take an argument."""
    for name in group.commands:
        command = group.get_command(None, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{name} ")
        elif any(param.param_type_name == "argument" for param in command.params):
            yield above + name


def test_each_command_with_a_location_is_walked() -> None:
    walked = {line.split()[0] for line in (*COMMANDS, COMMAND_OF_BLOCKS, *WRITING_COMMANDS)}
    found = {*commands(get_command(app))}
    assert walked <= found
    assert not found - walked - exceptions()
