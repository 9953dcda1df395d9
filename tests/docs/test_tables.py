"""The tables of docs/support.md are up to date, and their statements are true."""

from __future__ import annotations

import ast
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore

from n5zarr.codecs.compress import _CODECS
from n5zarr.conventions.describe import WRITTEN, describe_axes
from n5zarr.conventions.model import axes_of
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.compression import COMPRESSIONS
from n5zarr.format.data_type import DataType
from n5zarr.metadata.inspect import describe
from tests.conformance import test_peers
from tests.conformance.test_java import checksum
from tests.docs import tables

PAGE = tables.PAGE.read_text(encoding="utf-8")
PRESENT = {name: tables.parse(table) for _, name, table, _ in tables.TABLE.findall(PAGE)}
EXAMPLES = tables.compression_examples()
TRUTH = [*map(json.loads, (tables.JAVA / "metadata.truth.jsonl").read_text().splitlines())]
# what tensorstore does not have, and what is not written
NOT_TENSORSTORE = {"lz4", "lzma"}
# By section: these say what blocks and directories mean, and what programs of others find; no part
# of the package lists that. The tests that prove it.
BY_HAND = {
    "Blocks": (
        "tests/conformance/test_java.py::test_dataset_reads_to_its_checksum_in_every_view",
        "tests/conformance/test_java.py::test_varlength_blocks_are_read_as_they_are",
        "tests/conformance/test_java.py::test_a_varlength_block_is_no_part_of_an_array",
        "tests/faults/test_mislabelled.py::test_a_stream_under_the_name_raw",
    ),
    "Nodes": (
        "tests/conformance/test_java.py::test_unusual_roots_open",
        "tests/contract/test_documents.py::test_empty_directories_below_the_root_are_groups",
        "tests/contract/test_zarr_use.py::test_links_are_followed_but_loops_are_not",
        "tests/contract/test_zarr_use.py::test_a_broken_child_is_left_out_with_one_warning",
    ),
    "Viewers": (
        "tests/contract/test_viewers.py::test_n5_universe_finds_all_levels_in_place",
        "tests/contract/test_viewers.py::test_n5_viewer_finds_all_levels_in_place",
        "tests/contract/test_viewers.py::test_neuroglancer_opens_the_pyramid_from_its_group",
        "tests/contract/test_viewers.py::test_big_data_viewer_finds_the_levels_of_a_setup",
        "tests/contract/test_viewers.py::test_tensorstore_finds_scale_and_unit",
    ),
    "Locations": (
        "tests/contract/test_locations.py::test_reading_takes_any_location",
        "tests/contract/test_locations.py::test_blocks_of_n5_must_be_stored",
        "tests/contract/test_locations.py::test_writing_in_place_names_the_way_out",
        "tests/contract/test_locations.py::test_commands_take_any_location",
        "tests/contract/test_locations.py::test_commands_that_write_in_place_name_the_way_out",
    ),
}


def test_every_table_is_made_or_known_to_be_by_hand() -> None:
    assert set(PRESENT) == set(tables.TABLES)
    rest = tables.TABLE.sub("", PAGE)
    by_hand = [part.splitlines()[0] for part in rest.split("\n## ") if "\n|---" in part]
    assert by_hand == list(BY_HAND)


@pytest.mark.parametrize("named", [named for tests in BY_HAND.values() for named in tests])
def test_rows_by_hand_have_a_test(named: str) -> None:
    file, name = named.split("::")
    assert f"def {name}(" in (tables.ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_table_is_what_there_is(name: str) -> None:
    """Each table is up to date; ``uv run python -m tests.docs.tables`` writes them."""
    assert tables.TABLES[name](PRESENT[name]) == PRESENT[name]


def test_the_page_is_written_in_one_form() -> None:
    form = tables.TABLE.sub(lambda m: m[1] + tables.formatted(tables.parse(m[3])) + m[4], PAGE)
    assert form == PAGE


def test_cells_are_short_and_full() -> None:
    for name, rows in PRESENT.items():
        assert len(set(map(len, rows))) == 1, name
        words = [word for row in rows for cell in row for word in cell.split()]
        assert max(map(len, words)) <= 24, name  # a phone shows about 40
    assert all(row[2] and row[3] for row in PRESENT["conventions"])


# ----------------------------------------------------------------------- data types, compressions


def test_all_data_types_and_compressions_are_there() -> None:
    names = " ".join(row[0] for row in PRESENT["data_types"])
    assert {str(name) for name in DataType} <= set(re.findall(r"\w+", names))
    types = {re.findall(r"\w+", row[0])[0] for row in PRESENT["compressions"][1:]}
    assert types == set(COMPRESSIONS) == set(_CODECS)


@pytest.mark.parametrize("data_type", [d for d in DataType if d.is_numeric])
@pytest.mark.parametrize(("codecs", "zarr_format"), tables.PRESENTATIONS)
def test_numbers_are_those_of_java(data_type: str, codecs: str, zarr_format: int) -> None:
    (given,) = [d for d in tables.MANIFEST["datasets"] if d["path"] == f"{data_type}/2d"]
    array = tables.opened(tables.JAVA / given["root"] / given["path"], codecs, zarr_format)
    assert checksum(np.asarray(array[...])) == given["sha256"]


@pytest.mark.parametrize("kind", EXAMPLES, ids=str)
def test_a_compression_is_read_in_every_presentation(kind: tables.Kind) -> None:
    alike = [d for d in tables.MANIFEST["datasets"] if tables.kind_of(d["compression"]) == kind]
    for how in tables.PRESENTATIONS:
        for given in alike[:2]:
            array = tables.opened(tables.JAVA / given["root"] / given["path"], *how)
            assert checksum(np.asarray(array[...])) == given["sha256"]
        if kind.type == "jpeg":
            assert np.all(np.asarray(tables.opened(EXAMPLES[kind], *how)[...]) == 77)
    # tests/conformance/test_zarr2_types.py has those of zarr-python 2
    assert alike or kind.type in {"jpeg", "lzma"}


@pytest.mark.parametrize("kind", EXAMPLES, ids=str)
def test_a_compression_is_written_where_the_table_says_so(
    kind: tables.Kind, tmp_path: Path
) -> None:
    said = {row[0]: row[2] for row in PRESENT["compressions"]}
    is_written = said.get(str(kind), said[str(tables.Kind(kind.type))]) == "yes"
    for number, how in enumerate(tables.PRESENTATIONS):
        copy = Path(shutil.copytree(EXAMPLES[kind], tmp_path / str(number)))
        array = tables.opened(copy, *how, mode="r+")
        values = np.arange(array.size).reshape(array.shape).astype(array.dtype)
        if not is_written:
            with pytest.raises(N5Error, match=r"can only be read|one that numcodecs supports"):
                array[...] = values
            continue
        array[...] = values
        if kind.type not in NOT_TENSORSTORE:
            members = tables.document(copy)
            for java in ("nthreads", "typesize"):  # tensorstore refuses them
                members["compression"].pop(java, None)
            (copy / "attributes.json").write_text(json.dumps(members))
            found = tensorstore.open(test_peers.tensorstore_spec(copy)).result().read().result()
            np.testing.assert_array_equal(found.transpose(), values)
        else:
            np.testing.assert_array_equal(tables.opened(copy)[...], values)


@pytest.mark.parametrize("kind", EXAMPLES, ids=str)
def test_blocks_are_one_codec_where_the_page_says_so(kind: tables.Kind, tmp_path: Path) -> None:
    assert '`codecs="n5"` shows N5\'s own types with one codec for all, `n5zarr.block`' in PAGE
    copy = Path(shutil.copytree(EXAMPLES[kind], tmp_path / "copy"))
    members = tables.document(copy)
    if members["dataType"] == "bool":  # zarr-python 2's
        assert "n5zarr" not in tables.shown_codec(copy, "n5", 3)
        (copy / "attributes.json").write_text(json.dumps({**members, "dataType": "uint8"}))
    assert tables.shown_codec(copy, "n5", 3) == "`n5zarr.block`"


# ------------------------------------------------------------------------------------ conventions


@pytest.mark.parametrize("row", PRESENT["conventions"][1:], ids=lambda row: row[0])
def test_a_convention_is_written_or_refused(row: list[str]) -> None:
    name, axes = row[0].strip("`"), axes_of(2, names=("x", "y"), scale=(2, 3), units=("nm", "nm"))
    assert (row[1] == "yes") == (name in WRITTEN)
    if row[1] == "yes":
        assert describe_axes(name, axes, "s0")
    else:
        with pytest.raises(N5UnrepresentableError, match=f"got '{name}'"):
            describe_axes(name, axes, "s0")


def test_viewers_have_a_row_for_each_convention_that_is_written() -> None:
    lines = PAGE.partition("\n## Viewers\n")[2].partition("\n## ")[0].splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", "".join(cells)) == ["auto", *WRITTEN]


@pytest.mark.parametrize("row", PRESENT["conventions"][1:], ids=lambda row: row[0])
def test_the_attributes_of_a_convention_are_those_that_its_module_reads(row: list[str]) -> None:
    elsewhere = {"factors": "levels", "names": "axis_names", "shapes": "levels"}
    name = elsewhere.get(row[0].strip("`"), row[0].strip("`"))
    folder = tables.ROOT / "n5zarr" / "conventions"
    trees = [ast.parse((folder / f"{part}.py").read_text()) for part in (name, "model")]
    known = {n.value for t in trees for n in ast.walk(t) if isinstance(n, ast.Constant)}
    named = [word for word in re.findall(r"`(\w+)`", row[2]) if word != "sK"]
    assert named or name == "bdv"
    assert set(named) <= known


# bdv and imagej have no lists
@pytest.mark.parametrize("name", sorted({t["convention"] for t in TRUTH} - {"bdv", "imagej"}))
def test_lists_of_a_convention_are_in_the_order_of_the_table(name: str) -> None:
    orders = set()
    for line in (line for line in TRUTH if line["convention"] == name):
        path = tables.JAVA / "metadata.n5" / line["path"]
        described: Any = describe(path, "", size=False)
        assert described["geometry"]["convention"] == name
        lists = [found for folder in (path, path.parent) for found in lists_in(folder)]
        scale = line["scale"]
        if scale != scale[::-1]:
            orders |= {"N5"} if scale in lists else set()
            orders |= {"C"} if scale[::-1] in lists else set()
    (said,) = [row[3] for row in PRESENT["conventions"] if row[0] == f"`{name}`"]
    assert orders == set(re.findall(r"\b(?:N5|C)\b", said))


def lists_in(folder: Path) -> list[Any]:
    """Collect the lists of numbers of a document, at any depth."""
    found: list[Any] = []

    def look(value: Any) -> None:
        if isinstance(value, list):
            found.append(value)
        if isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                look(each)

    if (folder / "attributes.json").exists():
        look(json.loads((folder / "attributes.json").read_text()))
    return found


def test_prose_of_a_table_stays() -> None:
    rows = PRESENT["conventions"]
    spoilt = [[name, "no", *prose] for name, _, *prose in reversed(rows)]
    assert tables.conventions(spoilt) == rows


# --------------------------------------------------------------------------------------- programs


def test_programs_are_those_of_the_tests() -> None:
    head, *rows = PRESENT["programs"]
    assert head[1:] == [*tables.WRITERS.values(), "z5py"]
    assert {row[0]: row[1] for row in rows}["`xz`"] == "from"
    n_given = sum(int(row[1]) for row in PRESENT["fixtures"][1:])
    assert n_given == len(tables.MANIFEST["datasets"])
