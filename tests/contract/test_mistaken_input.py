"""Mistaken input gives the same message from the library, the engine and the command."""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.errors import ArrayNotFoundError, ContainsArrayError, GroupNotFoundError
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.errors import (
    N5Error,
    N5FormatError,
    N5MissingDependencyError,
    N5UnrepresentableError,
    N5Warning,
)
from tests.command import CliRunner
from tests.contract.stored import contents

SAMPLE = Path(n5zarr.sample_path())
XML = """<?xml version="1.0" encoding="UTF-8"?>
<SpimData version="0.2"><SequenceDescription><ImageLoader format="bdv.n5" version="1.0">
<n5 type="relative">a.n5</n5></ImageLoader></SequenceDescription></SpimData>
"""
DATASET = b'{"dataType":"uint8","compression":{"type":"raw"},"blockSize":[2],"dimensions":[3]}'


class Mistake(NamedTuple):
    """A path, a node below it, and the message: what is there, and the way out."""

    path: str
    node: str
    what: str
    way_out: str
    error: type[Exception] = FileNotFoundError


ZARR = "open it with zarr.open(...)"
IN_GROUP = "got nothing; in /em: s0, s1, s2"
MISTAKES = {
    "nothing": Mistake("no.n5", "", "does not exist", "the nearest existing directory is"),
    "below-a-file": Mistake("a.h5/em.n5", "", "does not exist", "a.h5 is an HDF5 file"),
    "zarr3-group": Mistake("g3.zarr", "", "got a Zarr v3 group", ZARR, N5FormatError),
    "zarr3-array": Mistake("g3.zarr/em/s0", "", "got a Zarr v3 array", ZARR, N5FormatError),
    "zarr3-inner": Mistake("z.n5", "em/s0", "got a Zarr v3 array", ZARR, N5FormatError),
    "zarr2-group": Mistake("g2.zarr", "", "got a Zarr v2 group", ZARR, N5FormatError),
    "zarr2-array": Mistake("g2.zarr/em/s0", "", "got a Zarr v2 array", ZARR, N5FormatError),
    "zarr2-nested": Mistake("g2.zarr/em/n", "", "got a Zarr v2 array", ZARR, N5FormatError),
    "hdf5": Mistake("a.h5", "", "got an HDF5 file", "open it with h5py.File(...)"),
    "hdf5-user-block": Mistake("u.h5", "", "got an HDF5 file", "open it with h5py.File(...)"),
    "file": Mistake("a.txt", "", "got a file", "a container is a directory"),
    "zip": Mistake("a.zip", "", "got a zip file without a container", "no attributes.json"),
    "zip-of-n5": Mistake("n5.zip", "", "got a zip file", "open 'zip://{path}'"),
    "zip-above-n5": Mistake("in.zip", "", "got a zip file", "open '{path}|zip:d/c.n5|n5:'"),
    "no-zip": Mistake("bad.zip", "", "got a damaged zip file", "check how it was copied"),
    "xml": Mistake("a.xml", "", "got an XML file of BigDataViewer", "n5zarr.open_bdv(...)"),
}
MISSING = {
    "empty": Mistake("empty.n5", "", "got an empty directory", "has an attributes.json"),
    "files": Mistake("files", "", "a directory with only a.txt", "has an attributes.json"),
    "no-node": Mistake("s.n5", "em/nope", "/em/nope: expected", IN_GROUP),
    "twice": Mistake("s.n5", "s.n5/em", "/s.n5/em: expected", "s.n5 is given twice"),
    "block": Mistake("s.n5", "em/s0/1/0", "/em/s0/1/0: expected", "/em/s0 is a dataset"),
}


def with_zarr(path: str, node: str, **options: Any) -> object:
    return zarr.open(N5Store(path, **options), path=node, mode="r")


ZARRS: dict[str, Callable[[str, str], object]] = {
    "zarr.open": with_zarr,
    "zarr.open_group": lambda path, node: zarr.open_group(N5Store(path), path=node, mode="r"),
    "zarr.open_array": lambda path, node: zarr.open_array(N5Store(path), path=node, mode="r"),
    "zarr.open-v2": lambda path, node: with_zarr(path, node, zarr_format=2),
    "xr.open_zarr": lambda path, node: xr.open_zarr(
        N5Store(path, coords=True), group=node, consolidated=False, chunks=None
    ),
}
OURS: dict[str, Callable[[str, str], object]] = {
    "open": lambda path, node: n5zarr.open(path, path=node),
    "open-r+": lambda path, node: n5zarr.open(path, "r+", path=node),
    "open_array": lambda path, node: n5zarr.open_array(path, path=node),
    "open_group": lambda path, node: n5zarr.open_group(path, path=node),
    "geometry": n5zarr.geometry,
    "set_geometry": lambda path, node: n5zarr.set_geometry(path, node, units=["nm", "nm"]),
    "read_block": lambda path, node: n5zarr.read_block(path, node, (0, 0)),
    "pyramid_levels": n5zarr.pyramid_levels,
    "open_dataset": lambda path, node: xr.open_dataset(path, engine="n5", group=node),
    "open_groups": lambda path, node: xr.open_groups(path, engine="n5", group=node),
    "open_datatree": lambda path, node: xr.open_datatree(path, engine="n5", group=node),
}
# all take the XML, and tell what is wrong with the container that it names; these name the XML, too
TAKE_XML = ("open_dataset", "open_groups", "open_datatree")
NAMED = Mistake("a.xml", "", "a.xml: its container: ", "a.n5")
CONTAINER = Mistake("a.n5", "", "does not exist", "the nearest existing directory is")
EMPTY = Mistake("a.n5", "", "expected an N5 container", "")  # on a server
COMMANDS = (["tree"], ["tree", "--json"], ["info"], ["info", "--verify"])


def make_zarr(store: Any, zarr_format: Any) -> None:
    group = zarr.open_group(store, mode="w", zarr_format=zarr_format)
    group.create_array("em/s0", shape=(7, 5), chunks=(3, 2), dtype="u1")[...] = 1
    nested: Any = {"name": "v2", "separator": "/"}
    kwargs = {"chunk_key_encoding": nested} if zarr_format == 2 else {}
    group.create_array("em/n", shape=(7, 5), chunks=(3, 2), dtype="u1", **kwargs)[...] = 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mistakes")
    shutil.copytree(SAMPLE, root / "s.n5")
    for name, zarr_format in {"g3.zarr": 3, "g2.zarr": 2, "z.n5": 3}.items():
        make_zarr(root / name, zarr_format)
    with h5py.File(root / "a.h5", "w") as file:
        file["x"] = np.arange(7)
    with h5py.File(root / "u.h5", "w", userblock_size=1024) as file:
        file["x"] = np.arange(7)
    (root / "a.txt").write_text("no N5\n")
    (root / "a.xml").write_text(XML)
    (root / "bad.zip").write_bytes(b"PK\x03\x04 and no more")
    members = {"a.zip": ["a.txt"], "n5.zip": ["attributes.json", "em/attributes.json"]}
    members["in.zip"] = ["d/c.n5/em/s0/attributes.json", "d/c.n5/attributes.json"]
    for name, files in members.items():
        with zipfile.ZipFile(root / name, "w") as archive:
            for file in files:
                archive.writestr(file, "{}")
    (root / "empty.n5").mkdir()
    (root / "files").mkdir()
    (root / "files" / "a.txt").write_text("no N5\n")
    return root


def check(message: str, mistake: Mistake, path: str) -> None:
    assert path in message
    assert mistake.what in message
    assert mistake.way_out.format(path=path) in message
    assert "\n" not in message
    assert message.count(path.removesuffix("/em/s0")) <= 2  # the place, and where the way out is


EVERY = pytest.mark.parametrize("name", MISTAKES | MISSING)


@pytest.mark.each_of(5)
@EVERY
@pytest.mark.parametrize("way", OURS)
def test_library_and_engine(folder: Path, name: str, way: str) -> None:
    mistake = (MISTAKES | MISSING)[name]
    path = str(folder / mistake.path)
    with pytest.raises(mistake.error) as caught:
        OURS[way](path, mistake.node)
    if name == "xml":
        mistake = NAMED if way in TAKE_XML else CONTAINER
    check(str(caught.value), mistake, str(folder / mistake.path))
    if mistake.error is FileNotFoundError:  # as zarr's own errors of missing nodes
        assert isinstance(caught.value, GroupNotFoundError)
        assert isinstance(caught.value, ArrayNotFoundError)
    else:
        assert getattr(caught.value, "kind", "") == "foreign"


@pytest.mark.parametrize("way", ["open", "geometry"])
@pytest.mark.parametrize("is_local", [True, False], ids=["files", "memory"])
def test_a_deep_path_takes_few_requests_and_steps(
    way: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_local: bool,
) -> None:
    place: Any = tmp_path if is_local else MemoryStore()
    zarr.create_group(N5Store(place), path="em/s0")
    caplog.set_level("DEBUG", "n5zarr.storage.requests")
    looked, lexists = [0], os.path.lexists

    def look(path: str) -> bool:
        looked[0] += 1
        return lexists(path)

    monkeypatch.setattr(os.path, "lexists", look)
    open_it: Any = OURS[way]
    with pytest.raises(FileNotFoundError, match="in /em: s0"):
        open_it(place if is_local else N5Store(place), f"em/{'a/' * 512}a")
    assert len(caplog.messages) < 60  # of 3 x 512 if each group above were asked for
    assert looked[0] < 300


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("way", ZARRS)
def test_zarr_on_a_store(folder: Path, name: str, way: str) -> None:
    mistake = MISTAKES[name]
    path = str(folder / mistake.path)
    with pytest.raises(mistake.error) as caught:
        ZARRS[way](path, mistake.node)
    check(str(caught.value), mistake, path)


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("way", ZARRS)
def test_zarr_says_itself_that_a_node_is_missing(folder: Path, name: str, way: str) -> None:
    mistake = MISSING[name]
    path = str(folder / mistake.path)
    with pytest.raises((GroupNotFoundError, ArrayNotFoundError)) as caught:
        ZARRS[way](path, mistake.node)
    assert path in str(caught.value)


@pytest.mark.each_of(5)
@EVERY
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_end_with_one_line(folder: Path, name: str, command: list[str]) -> None:
    mistake = (MISTAKES | MISSING | {"xml": NAMED})[name]
    path = str(folder / mistake.path)
    result = CliRunner().invoke(app, [*command, f"{path}/{mistake.node}".rstrip("/")])
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith(f"n5zarr: error: {path}")
    check(line, mistake, path)


@EVERY
def test_nothing_is_made_or_changed(folder: Path, name: str) -> None:
    mistake = (MISTAKES | MISSING)[name]
    before = sorted(folder.rglob("*"))
    for way in (*OURS.values(), *ZARRS.values()):
        with pytest.raises((mistake.error, GroupNotFoundError, ArrayNotFoundError)):
            way(str(folder / mistake.path), mistake.node)
    assert sorted(folder.rglob("*")) == before


# ------------------------------------------------------------------------ the info of a store


@pytest.mark.parametrize("name", MISTAKES | {name: MISSING[name] for name in ("empty", "files")})
def test_the_info_of_a_store(folder: Path, name: str) -> None:
    mistake = (MISTAKES | MISSING)[name]
    path = str(folder / mistake.path)
    if mistake.node:  # the root itself is another mistake
        mistake = mistake._replace(what="got a Zarr v3 group")
    with pytest.raises(mistake.error) as caught:
        _ = N5Store(path, read_only=True).info
    check(str(caught.value), mistake, path)


@pytest.mark.parametrize("read_only", [True, False])
def test_the_info_of_a_root_that_cannot_be_read(tmp_path: Path, read_only: bool) -> None:
    document = tmp_path / "attributes.json"
    for text, message in {'{"n5":"9.0.0"}': "got '9.0.0'", "{": "not JSON"}.items():
        document.write_text(text)
        with pytest.raises(N5Error, match=message) as caught:
            _ = N5Store(tmp_path, read_only=read_only).info
        assert str(caught.value).startswith(f"{tmp_path}: attributes.json: ")
    document.unlink()
    (tmp_path / "a.txt").write_text("no N5")
    with pytest.raises(FileNotFoundError, match="got a file"):
        _ = N5Store(tmp_path / "a.txt", read_only=read_only).info


# ---------------------------------------------------------------- neither file nor directory


def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.n5").symlink_to("nowhere")
    for call in (n5zarr.open, lambda path: N5Store(path, read_only=True).info):
        with pytest.raises(FileNotFoundError) as caught:
            call(tmp_path / "a.n5")
        assert str(caught.value) == (
            f"{tmp_path / 'a.n5'}: expected an N5 container, got a link to nowhere, which does "
            "not exist"
        )
    array = n5zarr.create_array(tmp_path / "a.n5", path="s0", shape=(7,), chunks=(3,), dtype="u1")
    array[...] = 5
    assert (tmp_path / "nowhere" / "s0" / "attributes.json").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_or_a_device_is_no_container(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.n5")
    for path, what in {tmp_path / "pipe.n5": "a named pipe", Path(os.devnull): "a device"}.items():
        for call in (n5zarr.open, lambda path: N5Store(path).info):
            with pytest.raises(FileNotFoundError) as caught:
                call(path)
            assert str(caught.value).startswith(f"{path}: expected an N5 container, got {what}; ")


# ------------------------------------------------------------------------------------ writing


# zarr leaves what it would have written next
@pytest.mark.each_of(3)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("name", ["zarr3-group", "zarr2-group", "hdf5", "file", "xml", "zip"])
def test_other_files_are_not_written_into(folder: Path, name: str) -> None:
    mistake = MISTAKES[name]
    path = str(folder / mistake.path)
    before = contents(folder)
    data = xr.Dataset({"a": ("x", np.arange(7))})
    for write in (
        lambda: zarr.open_group(N5Store(path), mode="a"),
        lambda: n5zarr.open(path, "a"),
        lambda: n5zarr.create_array(path, path="a", shape=(7,), chunks=(3,), dtype="u1"),
        lambda: n5zarr.to_n5(data, path, mode="a"),
    ):
        with pytest.raises(mistake.error) as caught:
            write()
        shown = CONTAINER if name == "xml" and "a.xml" not in str(caught.value) else mistake
        check(str(caught.value), shown, str(folder / shown.path))
    assert contents(folder) == before


# -------------------------------------------------------------------------- the other kind


def test_a_group_where_an_array_is_meant(folder: Path) -> None:
    path = str(folder / "s.n5")
    with pytest.raises(N5UnrepresentableError, match="got a group; arrays in it: em/s0, em/s1"):
        n5zarr.open_array(path)
    with pytest.raises(N5UnrepresentableError, match=r"s\.n5: em: .*: em/s0, em/s1, em/s2; "):
        n5zarr.open(path, path="em", ndim=3)
    with pytest.raises(FileNotFoundError, match="expected a dataset, got a group; in it: em/s0"):
        n5zarr.read_block(path, "em", (0, 0, 0))
    with pytest.warns(N5Warning, match=r"s\.n5: /: no dataset .* em/s0, em/s1, em/s2, labels/s0$"):
        empty = xr.open_dataset(path, engine="n5")
    assert not empty.variables


def test_an_array_where_a_group_is_meant(folder: Path) -> None:
    path = str(folder / "s.n5")
    with pytest.raises(N5UnrepresentableError, match=r"got an array; n5zarr\.open_array"):
        n5zarr.open_group(path, path="em/s0")
    with pytest.raises(ContainsArrayError):
        zarr.open_group(N5Store(path), path="em/s0", mode="r")


def test_a_dataset_without_its_document(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "s.n5")
    (tmp_path / "s.n5/em/s0/attributes.json").unlink()
    with pytest.warns(N5Warning, match=r"em/s0: no dataset is .* has an attributes\.json$"):
        empty = xr.open_dataset(tmp_path / "s.n5", engine="n5", group="em/s0")
    assert not empty.variables


# ----------------------------------------------------------------------- Zarr and N5 together


def test_zarr_inside_a_container_is_told(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "s.n5")
    make_zarr(tmp_path / "s.n5" / "raw.zarr", 3)
    result = CliRunner().invoke(app, ["tree", str(tmp_path / "s.n5")])
    assert result.exit_code == 0
    assert result.output.splitlines()[-1].startswith("└── raw.zarr  foreign: expected N5, got")
    with pytest.warns(N5Warning, match=r"raw\.zarr: expected N5, got a Zarr v3 group"):
        assert set(zarr.open_group(N5Store(tmp_path / "s.n5"), mode="r")) == {"em", "labels"}


ZARR_GROUPS = {"zarr.json": '{"zarr_format":3,"node_type":"group"}', ".zgroup": '{"zarr_format":2}'}


@pytest.mark.parametrize("document", ZARR_GROUPS)
def test_a_stray_document_of_zarr_above_n5(tmp_path: Path, document: str) -> None:
    """A document of a Zarr group above N5 datasets hides none of them."""
    place = tmp_path / "p.n5"
    dataset = place / "em" / "x" / "s0"
    (dataset / "0").mkdir(parents=True)
    (dataset / "attributes.json").write_bytes(DATASET)
    (place / document).write_text(ZARR_GROUPS[document])
    assert set(n5zarr.open_group(place)) == {"em"}
    assert isinstance(zarr.open(N5Store(place), mode="r"), zarr.Group)
    assert "/em/x" in xr.open_datatree(place, engine="n5").groups
    # below a root that has one of N5
    (place / "attributes.json").write_text('{"n5":"2.5.1"}')
    (place / document).rename(place / "em" / document)
    assert set(n5zarr.open_group(place)) == {"em"}
    assert "/em/x" in xr.open_datatree(place, engine="n5").groups


# ----------------------------------------------------------------------------------- servers


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


REMOTE = {
    "zarr3-group": Mistake("g3.zarr", "", "got a Zarr v3 group", ZARR, N5FormatError),
    "zarr3-array": Mistake("g3.n5", "em/s0", "got a Zarr v3 array", ZARR, N5FormatError),
    "zarr2-array": Mistake("g2.n5", "em/n", "got a Zarr v2 array", ZARR, N5FormatError),
    "nothing": Mistake("no.n5", "", "got nothing", "check the location"),
    "hdf5": Mistake("a.h5", "", "got an HDF5 file", "open it with h5py.File(...)"),
    "xml": Mistake("a.xml", "", "got an XML file of BigDataViewer", "n5zarr.open_bdv(...)"),
    "no-node": Mistake("s.n5", "em/nope", "/em/nope: expected", IN_GROUP),
}


@pytest.mark.each_of(3)
@pytest.mark.parametrize("name", REMOTE)
def test_servers(memory: Any, name: str) -> None:
    for store, zarr_format in {"g3.zarr": 3, "g3.n5": 3, "g2.n5": 2}.items():
        make_zarr(f"memory://{store}", zarr_format)
    data = io.BytesIO()
    with h5py.File(data, "w") as file:
        file["x"] = np.arange(7)
    memory.pipe({"/a.h5": data.getvalue(), "/a.xml": XML.encode()})
    memory.put(os.fspath(SAMPLE), "/s.n5", recursive=True)
    mistake = REMOTE[name]
    url = f"memory:///{mistake.path}"
    for way, call in OURS.items():
        with pytest.raises(mistake.error) as caught:
            call(url, mistake.node)
        wanted = (NAMED if way in TAKE_XML else EMPTY) if name == "xml" else mistake
        check(str(caught.value), wanted, f"memory:///{wanted.path}")
    for command in COMMANDS:
        result = CliRunner().invoke(app, [*command, f"{url}/{mistake.node}".rstrip("/")])
        assert result.exit_code == 2
        check(result.output.strip(), NAMED if name == "xml" else mistake, url)
    if mistake.error is N5FormatError:
        with pytest.raises(N5FormatError) as shown:
            with_zarr(url, mistake.node)
        check(str(shown.value), mistake, url)
    else:
        with pytest.raises(GroupNotFoundError):
            with_zarr(url, mistake.node)


class NoLists(SimpleHTTPRequestHandler):
    """Serve files without lists of directories."""

    def log_message(self, *_: object) -> None:
        pass

    def list_directory(self, path: Any) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)


@pytest.mark.each_of(3)
@pytest.mark.parametrize(
    "name", ["zarr3-group", "zarr3-array", "zarr2-group", "zarr2-array", "hdf5", "xml", "nothing"]
)
def test_web_servers_without_lists(folder: Path, name: str) -> None:
    mistake = (MISTAKES | {"nothing": REMOTE["nothing"]})[name]
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(NoLists, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/{mistake.path}"
            with pytest.raises(FileNotFoundError) as caught:
                n5zarr.open(url)
            shown = EMPTY if name == "xml" else mistake
            check(str(caught.value), shown, url.removesuffix(mistake.path) + shown.path)
            result = CliRunner().invoke(app, ["tree", url])
            assert result.exit_code == 2
            check(result.output.strip(), NAMED if name == "xml" else mistake, url)
        finally:
            server.shutdown()
            thread.join()


# ------------------------------------------------------------------------- unreadable, missing


@pytest.mark.parametrize("broken", ["document", "directory"])
@pytest.mark.parametrize("depth", [[], ["--depth", "2"]], ids=["all", "depth"])
def test_one_unreadable_child_does_not_end_a_tree(
    tmp_path: Path, broken: str, depth: list[str]
) -> None:
    for path in ("a/s0", "b/s0", "c"):
        n5zarr.create_array(tmp_path / "t.n5", path=path, shape=(3,), chunks=(2,), dtype="u1")
    # a name that is a link to itself cannot be opened, whoever asks
    link = tmp_path / "t.n5" / ("b/attributes.json" if broken == "document" else "b/x")
    link.unlink(missing_ok=True)
    if broken == "directory":
        link.mkdir()
        link /= "attributes.json"
    link.symlink_to(link.name)
    result = CliRunner().invoke(app, ["tree", *depth, str(tmp_path / "t.n5")])
    assert result.exit_code == 2
    *lines, last = result.output.splitlines()
    (line,) = [line for line in lines if "unreadable: " in line]
    assert str(link) in line
    assert [line.strip("│├─└ ").split()[0] for line in lines[1:]] == (
        ["a", "s0", "b", "c"] if broken == "document" else ["a", "s0", "b", "s0", "x", "c"]
    )
    assert last == f"n5zarr: error: {tmp_path}/t.n5: 1 of the nodes cannot be read"
    as_json = CliRunner().invoke(app, ["tree", "--json", *depth, str(tmp_path / "t.n5")])
    assert as_json.exit_code == 2
    assert '"kind": "unreadable"' in as_json.stdout
    verified = CliRunner().invoke(app, ["info", "--verify", str(tmp_path / "t.n5")])
    assert verified.exit_code == 2


@pytest.mark.parametrize(
    ("module", "scheme", "url", "message"),
    [
        ("s3fs", "s3", "s3://b/a.n5", "s3 URLs needs the package 's3fs': pip install 'n5zarr["),
        ("gcsfs", "gs", "simplecache::gs://b/a.n5", "simplecache::gs URLs needs the package 'g"),
        ("paramiko", "sftp", "sftp://h/a.n5", "needs the package 'paramiko': pip install paramiko"),
    ],
)
def test_a_url_without_its_package(
    monkeypatch: pytest.MonkeyPatch, module: str, scheme: str, url: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    loaded: Any = sys.modules["fsspec.registry"]  # a name in fsspec hides it
    monkeypatch.delitem(loaded._registry, scheme, raising=False)
    with pytest.raises(N5MissingDependencyError) as caught:
        N5Store(url)
    assert message in str(caught.value)
    assert "No module named" not in str(caught.value)


def test_the_engine_says_whose_it_is() -> None:
    engine = xr.backends.list_engines()["n5"]
    assert engine.description.startswith("n5zarr: ")
    assert "n5zarr" in engine.url
    assert "://" not in engine.url
