"""Attributes are read, set and removed by functions and by ``n5zarr attrs``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
import xarray as xr
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.errors import N5AttributesError, N5UnrepresentableError, N5UnsupportedError
from tests.command import CliRunner

# as Java spells it: with numbers that Python would spell otherwise, and members out of order
TEXT = (
    '{"zoom":[1.0E-12, 2.50],"dimensions":[7,5],"dataType":"uint16","blockSize":[3,2],'
    '"compression":{"type":"raw"},"n5":"4.0.0","big":123456789012345678901234567890,"é":{"a":[1]}}'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a container that is one dataset."""
    path = tmp_path / "a.n5"
    path.mkdir()
    (path / "attributes.json").write_text(TEXT, encoding="utf-8")
    return path


def text(root: Path) -> str:
    return (root / "attributes.json").read_text(encoding="utf-8")


def test_attributes_that_are_not_set_keep_their_order_and_spelling(root: Path) -> None:
    n5zarr.set_attribute(root, "", "é/a[2]", 5)
    n5zarr.set_attribute(root, "", "m/s", "x")
    start = TEXT[: TEXT.index('"é"')]
    written = text(root)
    for member in ('"zoom":[1.0E-12, 2.50]', '"big":123456789012345678901234567890'):
        assert member in written
    assert written.startswith(start)
    assert json.loads(written)["é"] == {"a": [1, 0, 5]}
    assert json.loads(written)["m"] == {"s": "x"}
    assert n5zarr.remove_attribute(root, "", "m")
    assert n5zarr.remove_attribute(root, "", "é/a[0]")
    assert not n5zarr.remove_attribute(root, "", "é/a[7]")
    assert json.loads(text(root)) == {**json.loads(TEXT), "é": {"a": [0, 5]}}


def test_values_that_java_or_tensorstore_cannot_take_are_kept_aside(root: Path) -> None:
    n5zarr.set_attribute(root, "", "limits[1]", math.nan)
    n5zarr.set_attribute(root, "", "units", "m")
    limits: Any = n5zarr.get_attribute(root, "", "limits")
    assert limits[0] == 0
    assert math.isnan(limits[1])
    assert n5zarr.get_attribute(root, "", "units") == "m"
    assert "NaN" not in json.dumps(json.loads(text(root))["limits"])
    opened = ts.open({"driver": "n5", "kvstore": f"file://{root}/"}, read=True).result()
    assert opened.shape == (7, 5)
    assert zarr.open_array(N5Store(root), mode="r").attrs["units"] == "m"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("dimensions[0]", "resize the array"),
        ("dataType", "copy the dataset"),
        ("/blockSize", "copy the dataset"),
        ("n5", "version of the container"),
        ("zarr/fill_value", "through Zarr"),
    ],
)
def test_n5s_own_keys_are_refused(root: Path, key: str, said: str) -> None:
    with pytest.raises(N5UnrepresentableError, match=said):
        n5zarr.set_attribute(root, "", key, [3])
    with pytest.raises(N5UnrepresentableError, match="expected"):
        n5zarr.remove_attribute(root, "", key)
    assert text(root) == TEXT


def test_a_group_must_not_become_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "a.n5" / "setup0").mkdir(parents=True)
    n5zarr.set_attribute(tmp_path / "a.n5", "setup0", "dataType", "uint8")  # as BigDataViewer
    n5zarr.set_attribute(tmp_path / "a.n5", "setup0", "dimensions", [3])
    with pytest.raises(N5UnrepresentableError, match="the group would be a dataset"):
        n5zarr.set_attribute(tmp_path / "a.n5", "setup0", "compression", {"type": "raw"})
    for key in ("", "[0]"):
        with pytest.raises(N5UnrepresentableError, match="stay an object with names"):
            n5zarr.set_attribute(tmp_path / "a.n5", "setup0", key, "text")
    n5zarr.set_attribute(tmp_path / "a.n5", "setup0", "", {"only": 1})
    assert n5zarr.get_attribute(tmp_path / "a.n5" / "setup0") == {"only": 1}


def test_writers_of_other_attributes_lose_nothing(root: Path) -> None:
    def write(n: int) -> None:
        n5zarr.set_attribute(root, "", f"of_all/k{n}", n)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(40)))
    assert n5zarr.get_attribute(root, "", "of_all") == {f"k{n}": n for n in range(40)}


def test_missing_nodes_and_read_only_stores(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"/nope: expected a group or dataset"):
        n5zarr.set_attribute(root, "nope", "a", 1)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        n5zarr.get_attribute(root.parent / "no.n5")
    with pytest.raises(N5UnsupportedError, match="read-only"):
        n5zarr.set_attribute(N5Store(root, read_only=True), "", "a", 1)


def test_any_zarr_store(root: Path) -> None:
    memory = MemoryStore()
    group = zarr.open_group(N5Store(memory), mode="a")
    array = group.create_array("x", shape=(3,), dtype="u1")
    n5zarr.set_attribute(memory, "x", "a[1]", "b")
    assert n5zarr.get_attribute(memory, "x", "a") == [None, "b"]
    assert dict(zarr.open_group(N5Store(memory), mode="r")["x"].attrs) == {"a": [None, "b"]}
    assert array.shape == (3,)


def test_the_command(root: Path) -> None:
    def run(*words: str, status: int = 0) -> str:
        result = CliRunner().invoke(app, ["attrs", str(root), *words])
        assert result.exit_code == status, result.output
        return result.output

    assert json.loads(run()) == json.loads(TEXT)
    assert run("zoom[1]") == "2.5\n"
    assert run("name", "two words") == ""
    assert run("name") == '"two words"\n'
    run("offset", "--", "-5")
    assert run("offset") == "-5\n"
    run("offset", "--remove")
    assert "there is no attribute 'offset'" in run("offset", status=1)
    assert "there is no attribute 'offset'" in run("--remove", "offset", status=1)
    assert "'dataType'" in run("dataType", "int8", status=2)
    assert "--remove" in run("--remove", status=2)


# ---------------------------------------------------------------------- names of N5 with odd values

ODD = {
    "nan": "NaN",
    "infinity": "-Infinity",
    "in a list": '[1, NaN, {"a": Infinity}]',
    "in an object": '{"a": [NaN, null], "b": -Infinity}',
}
NAMES = ("n5", "dimensions", "blockSize", "dataType", "compression", "compressionType", "codecs")
GROUP = '{{"before":1.50,"{name}":{value},"after":NaN}}'
DATASET = (
    '{{"dimensions":[5,3],"dataType":"uint8","compression":{{"type":"raw"}},"{name}":{value}}}'
)


def through_zarr(zarr_format: Any, key: str, value: Any) -> Callable[[Path, str], None]:
    def change(root: Path, path: str) -> None:
        store = N5Store(root, zarr_format=zarr_format)
        node = zarr.open(store, path=path, mode="r+")
        if value is None:
            del node.attrs[key]
        else:
            node.attrs[key] = value

    return change


def resize(root: Path, path: str) -> None:
    n5zarr.open_array(root, path=path, mode="r+").resize((5, 7))


WAYS: dict[str, Callable[[Path, str], object]] = {
    "zarr v3": through_zarr(3, "z", 1),
    "zarr v2": through_zarr(2, "z", 1),
    "deletion in zarr v3": through_zarr(3, "before", None),
    "deletion in zarr v2": through_zarr(2, "before", None),
    "set_attribute": lambda root, path: n5zarr.set_attribute(root, path, "z/a[1]", 1),
    "remove_attribute": lambda root, path: n5zarr.remove_attribute(root, path, "before"),
}
OF_DATASETS: dict[str, Callable[[Path, str], object]] = {
    "set_geometry": lambda root, path: n5zarr.set_geometry(root, path, scale=(2.0, 3.0)),
    "resize": resize,
}


def attributes_of(root: Path, path: str, zarr_format: Any = 3) -> str:
    """Return the attributes as text, so that NaN equals NaN, and 1 does not equal 1.0."""
    node = zarr.open(N5Store(root, zarr_format=zarr_format), path=path, mode="r")
    changed = (
        "before", "z", "_ARRAY_DIMENSIONS", "pixelResolution", "transform", "axes", "units",
        "resolution",
    )  # fmt: skip
    return json.dumps({k: v for k, v in node.attrs.asdict().items() if k not in changed})


def check_kept(root: Path, path: str, way: Callable[[Path, str], object], name: str) -> None:
    before, stored = attributes_of(root, path), (root / path / "attributes.json").read_text()
    assert name in json.loads(before)
    way(root, path)
    assert (root / path / "attributes.json").read_text() != stored
    assert attributes_of(root, path) == before
    assert attributes_of(root, path, 2) == before
    json.loads((root / path / "attributes.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.each_of(11)
@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_attributes_of_groups_with_names_of_n5_keep_nan(
    tmp_path: Path, name: str, way: Callable[[Path, str], object], value: str
) -> None:
    document = GROUP.format(name=name, value=value)
    for path in ("g", "g/h"):
        (tmp_path / "c.n5" / path).mkdir(parents=True)
        (tmp_path / "c.n5" / path / "attributes.json").write_text(document)
        check_kept(tmp_path / "c.n5", path, way, name)
    if name != "n5":  # of the root, it is the version
        (tmp_path / "c.n5" / "attributes.json").write_text(document)
        check_kept(tmp_path / "c.n5", "", way, name)


@pytest.mark.parametrize("value", ["NaN", '{"a": [NaN, 1]}'], ids=["nan", "in an object"])
@pytest.mark.parametrize("way", (WAYS | OF_DATASETS).values(), ids=WAYS | OF_DATASETS)
def test_codecs_of_a_dataset_that_are_an_attribute_keep_nan(
    tmp_path: Path, way: Callable[[Path, str], object], value: str
) -> None:
    """An attribute `codecs` of a dataset that is no list of Java N5 4 keeps NaN."""
    members = f'{{"a":{value}}}' if value == "NaN" else value
    document = DATASET.format(name="codecs", value=members)
    (tmp_path / "c.n5" / "a").mkdir(parents=True)
    (tmp_path / "c.n5" / "a" / "attributes.json").write_text(
        document[:-1] + ',"before":1,"after":[NaN]}'
    )
    check_kept(tmp_path / "c.n5", "a", way, "codecs")


def test_nan_among_the_recorded_attributes_is_kept(tmp_path: Path) -> None:
    document = DATASET.format(name="zarr", value='{"attributes":{"n5":[NaN],"dimensions":NaN}}')
    (tmp_path / "c.n5" / "a").mkdir(parents=True)
    (tmp_path / "c.n5" / "a" / "attributes.json").write_text(document)
    before = attributes_of(tmp_path / "c.n5", "a")
    assert before == '{"n5": [NaN], "dimensions": NaN}'
    n5zarr.set_attribute(tmp_path / "c.n5", "a", "z", 1)
    assert attributes_of(tmp_path / "c.n5", "a") == before


def test_a_record_that_is_no_object_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "c.n5" / "g").mkdir(parents=True)
    document = tmp_path / "c.n5" / "g" / "attributes.json"
    document.write_text('{"zarr":NaN,"a":1}')
    message = r"g/attributes\.json: zarr: expected an obj"
    for way in ("set_attribute", "zarr v3", "zarr v2"):
        with pytest.raises(N5AttributesError, match=message):
            WAYS[way](tmp_path / "c.n5", "g")
    assert document.read_text() == '{"zarr":NaN,"a":1}'


@pytest.mark.parametrize("way", (WAYS | OF_DATASETS).values(), ids=WAYS | OF_DATASETS)
def test_a_licence_at_the_head_of_a_document_stays(
    tmp_path: Path, way: Callable[[Path, str], object]
) -> None:
    """Comments around the members of a document stay, as in those of MoBIE and bigwarp."""
    head = "/*\n * {licence} // of all\n */\n// and\n# by hand\n"
    text = '{"dimensions":[5,3],"blockSize":[2,2],"dataType":"uint8","compression":{"type":"raw"},'
    text += '"before" /* of it */: 1 }\n// the end'
    (tmp_path / "c.n5" / "a").mkdir(parents=True)
    document = tmp_path / "c.n5" / "a" / "attributes.json"
    document.write_text(head + text)
    way(tmp_path / "c.n5", "a")
    new = document.read_text()
    assert new != head + text
    assert new.startswith(head + '{"dimensions":[')
    assert new.endswith("}\n// the end")
    assert n5zarr.open_array(tmp_path / "c.n5", path="a").dtype == "uint8"


# ---------------------------------------------------------------------- numbers of numpy

NUMPY: dict[str, Any] = {
    "offset": [np.int64(8), np.int32(0)], "max": np.float32(2.5), "fits": np.bool_(True),
    "matrix": np.arange(6).reshape(2, 3), "deep": {"0-d": np.array(3), "name": np.str_("a")},
}  # fmt: skip
PLAIN = {
    "offset": [8, 0], "max": 2.5, "fits": True, "matrix": [[0, 1, 2], [3, 4, 5]],
    "deep": {"0-d": 3, "name": "a"},
}  # fmt: skip


def create(root: Path, attributes: dict[str, Any]) -> None:
    n5zarr.create_array(root, path="a", shape=(5, 7), dtype="u1", attributes=attributes)


def to_n5(root: Path, attributes: dict[str, Any]) -> None:
    data = xr.Dataset({"a": (("y", "x"), np.ones((5, 7)), attributes)}, attrs=attributes)
    n5zarr.to_n5(data, root)
    assert n5zarr.get_attribute(root, "") == {"n5": "4.0.0", **PLAIN}


def on_node(change: Callable[[Any, dict[str, Any]], object], kind: str) -> Any:
    def write(root: Path, attributes: dict[str, Any]) -> None:
        if kind == "group":
            node: Any = n5zarr.open_group(root, "a").require_group("a")
        else:  # without n5zarr's codec it is another class
            dtype = "c8" if "c8" in kind else "u1"
            node = n5zarr.create_array(root, path="a", shape=(3,), dtype=dtype)
        node.attrs.update(before=1)
        change(node, attributes)

    return write


def set_each(node: Any, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        node.attrs[key] = value


def set_by_function(node: Any, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        n5zarr.set_attribute(node.store, node.path, key, value)


CHANGES: dict[str, Callable[[Any, dict[str, Any]], object]] = {
    "each": set_each,
    "update": lambda node, given: node.attrs.update(given),
    "put": lambda node, given: node.attrs.put(given),
    "update_attributes": lambda node, given: node.update_attributes(given),
    "set_attribute": set_by_function,
}
WRITERS: dict[str, Any] = {
    "create_array": create,
    "to_n5": to_n5,
    "create_array of a group": lambda root, given: n5zarr.open_group(root, "a").create_array(
        "a", shape=(3,), dtype="u1", attributes=given
    ),
    "create_group": lambda root, given: n5zarr.open_group(root, "a").create_group(
        "a", attributes=given
    ),
    "require_array": lambda root, given: n5zarr.open_group(root, "a").require_array(
        "a", shape=(3,), dtype="u1", attributes=given
    ),
}  # fmt: skip
CHANGED = {
    f"{name} of {kind}": on_node(change, kind)
    for name, change in CHANGES.items()
    for kind in ("group", "array", "array of c8")
}


@pytest.mark.parametrize("how", [*WRITERS, *CHANGED])
def test_numbers_of_numpy_are_written_and_what_json_lacks_is_refused(
    tmp_path: Path, how: str
) -> None:
    write = (WRITERS | CHANGED)[how]
    write(tmp_path / "a.n5", NUMPY)
    document = json.loads((tmp_path / "a.n5/a/attributes.json").read_text())
    assert document.items() >= PLAIN.items()
    assert ("before" in document) is (how in CHANGED and "put" not in how)
    for bad in (1j, np.datetime64("2026-01-01", "ns"), b"x"):
        root = tmp_path / f"{type(bad).__name__}.n5"
        with pytest.raises(N5UnrepresentableError, match="attribute 'b': expected what JSON"):
            write(root, {"b": {"c": [1, bad]}})
        if how in CHANGED:  # nothing is lost, on disk and for the next change
            node: Any = n5zarr.open(root, "r+", path="a")
            assert node.attrs.asdict() == {"before": 1}


def test_attributes_that_are_refused_leave_the_open_ones(tmp_path: Path) -> None:
    """zarr forgets all attributes before it writes others with ``put``."""
    nodes: list[Any] = [n5zarr.open_group(tmp_path / "a.n5", "a")]
    nodes.append(nodes[0].create_array("a", shape=(3,), dtype="u1"))
    nodes.append(n5zarr.create_array(tmp_path / "a.n5", path="b", shape=(3,), dtype="u1"))
    for node in nodes:
        node.attrs.put({"a": np.int8(1), "b": np.arange(2)})
        with pytest.raises(N5UnrepresentableError, match="attribute 'c'"):
            node.attrs.put({"c": 1j})
        node.attrs["d"] = np.float16(0.5)
        again: Any = n5zarr.open(tmp_path / "a.n5", "r", path=node.path)
        assert node.attrs.asdict() == again.attrs.asdict() == {"a": 1, "b": [0, 1], "d": 0.5}
