"""Make the tables of docs/support.md by trying the package on its test data.

``uv run python -m tests.docs.tables`` writes them between their marks. Of a table whose rows are
known and whose last columns are prose, these columns stay as they are.
"""

from __future__ import annotations

import atexit
import itertools
import json
import re
import shutil
import struct
import sys
import tempfile
from collections import Counter
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import zarr
from PIL import Image

import n5zarr
from n5zarr import N5Store
from n5zarr.conventions.describe import WRITTEN
from n5zarr.conventions.find import CONVENTIONS
from n5zarr.errors import N5Error, N5MissingDependencyError
from n5zarr.format.compression import COMPRESSIONS
from n5zarr.format.data_type import DataType
from n5zarr.store.buffers import StoreMapping
from tests.conformance import test_peers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "support.md"
DATA = ROOT / "tests" / "data"
JAVA = DATA / "java"
MANIFEST = json.loads((JAVA / "manifest.json").read_text(encoding="utf-8"))
TABLE = re.compile(
    r"(<!-- made by `python -m tests\.docs\.tables`: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL
)
PRESENTATIONS: list[tuple[Any, Any]] = list(itertools.product(("zarr", "n5", "portable"), (3, 2)))
OPTIONAL = ("lz4.block", "PIL", "cramjam")  # modules of the extras for compressions
WRITERS = {"java-n5": "Java N5", "zarr-python": "zarr-python 2", "tensorstore": "tensorstore"}

type Rows = list[list[str]]


class Kind(NamedTuple):
    """A compression of a row: its type, and the members that choose a format."""

    type: str
    member: str = ""  # "useZlib", or the `cname` of blosc

    def __str__(self) -> str:
        return f"`{self.type}`, `{self.member}`" if self.member else f"`{self.type}`"


def kind_of(compression: dict[str, Any]) -> Kind:
    member = "useZlib" if compression.get("useZlib") else compression.get("cname", "")
    return Kind(compression["type"], member)


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "attributes.json").read_text(encoding="utf-8"))
    return found


def datasets_of(container: Path) -> Iterator[Path]:
    """List the datasets of a container of the test data."""
    for path in sorted(container.rglob("attributes.json")):
        if "dataType" in document(path.parent):
            yield path.parent


@cache
def compression_examples() -> dict[Kind, Path]:
    """Find the smallest dataset of another program for each compression; jpeg is Pillow's."""
    # those of Java may be of blocks that snappy has not made smaller, and blosc left as they are
    snappy = next(datasets_of(DATA / "snappy.n5"))
    found = {kind_of(document(snappy)["compression"]): snappy}
    for given in sorted(MANIFEST["datasets"], key=lambda d: int(np.prod(d["dims"]))):
        if given["root"] == "compressions.n5":
            found.setdefault(kind_of(given["compression"]), JAVA / given["root"] / given["path"])
    for folder in datasets_of(DATA / "zarr2_types.n5"):
        found.setdefault(kind_of(document(folder)["compression"]), folder)
    temporary = Path(tempfile.mkdtemp(prefix="n5zarr-tables-"))
    atexit.register(shutil.rmtree, temporary)
    found[Kind("jpeg")] = jpeg_dataset(temporary)
    return {kind: found[kind] for name in COMPRESSIONS for kind in found if kind.type == name}


def jpeg_dataset(folder: Path) -> Path:
    """Write a dataset of one block with Pillow."""
    header = struct.pack(">HHII", 0, 2, 16, 8)
    image = BytesIO()
    Image.fromarray(np.full((8, 16), 77, "u1")).save(image, "jpeg")
    members = {"dimensions": [16, 8], "blockSize": [16, 8], "dataType": "uint8"}
    (folder / "attributes.json").write_text(
        json.dumps({**members, "compression": {"type": "jpeg"}}), encoding="utf-8"
    )
    (folder / "0").mkdir()
    (folder / "0" / "0").write_bytes(header + image.getvalue())
    return folder


def opened(folder: Path, codecs: Any = "zarr", zarr_format: Any = 3, mode: Any = "r") -> Any:
    return zarr.open_array(N5Store(folder, codecs=codecs, zarr_format=zarr_format), mode=mode)


def works(function: Callable[..., object], *arguments: Any) -> bool:
    """Return whether a call gives the right result; False if it raises an error of n5zarr."""
    try:
        return function(*arguments) is not False
    except N5Error:
        return False


def copied(folder: Path, into: str) -> Path:
    return Path(shutil.copytree(folder, Path(into) / "copy", dirs_exist_ok=True))


def same(found: Any, expected: Any) -> bool:
    """Return whether values are the same, bit by bit where they are numbers."""
    values, wanted = np.asarray(found), np.asarray(expected)
    if values.dtype.kind in "TOU":
        return bool(np.array_equal(values, wanted))
    values = values.astype(values.dtype.newbyteorder("="))
    return values.tobytes() == wanted.astype(values.dtype).tobytes()


def writes_array(folder: Path, codecs: Any = "zarr", zarr_format: Any = 3) -> bool:
    """Return whether other values, written into a copy, are read back."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = copied(folder, temporary)
        array = opened(copy, codecs, zarr_format, "r+")
        values = np.flip(np.asarray(array[...]))
        array[...] = values
        return same(opened(copy)[...], values)


def first_position(folder: Path) -> tuple[int, ...]:
    return (0,) * len(document(folder)["dimensions"])


def writes_block(folder: Path) -> bool:
    """Return whether the first block, removed from a copy and written again, is the same."""
    with tempfile.TemporaryDirectory() as temporary:
        copy, position = copied(folder, temporary), first_position(folder)
        block = n5zarr.read_block(copy, "", position)
        copy.joinpath(*map(str, position)).unlink()
        assert block is not None
        n5zarr.write_block(copy, "", position, block)
        again = n5zarr.read_block(copy, "", position)
        assert again is not None
        return same(again.data, block.data)


# ------------------------------------------------------------------------------------- the tables


def data_types(_present: Rows) -> Rows:
    """Try an array and a block of each data type of the test data."""
    rows: dict[tuple[str, ...], list[str]] = {}
    is_of_n5 = {f"`{name}`" for name in DataType}
    for name, folder in type_examples():
        names = rows.setdefault((str(name in is_of_n5), *outcome(folder)), [])
        if name not in names:
            names.append(name)
    return [
        ["N5 `dataType`", "shown as", "arrays", "blocks"],
        *([", ".join(names), *cells] for (_, *cells), names in rows.items()),
    ]


def type_examples() -> Iterator[tuple[str, Path]]:
    """Return a dataset for each name of a data type."""
    others = {"string": "strings.n5/simple", "object": "varlen.n5/object"}
    for data_type in DataType:
        yield f"`{data_type}`", JAVA / others.get(data_type, f"dtypes.n5/{data_type}/2d")
    yield "`uint8` with `isLabelMultiset`", JAVA / "labels.n5" / "labels" / "s0"
    other: dict[str, Path] = {}
    for folder in datasets_of(DATA / "zarr2_types.n5"):
        if document(folder)["dimensions"]:
            other.setdefault(document(folder)["dataType"], folder)
    for name in sorted(other.keys() - {*DataType}):
        yield f"`{re.sub(r'\[.*', '[unit]', name)}`", other[name]


def outcome(folder: Path) -> tuple[str, str, str]:
    """Return how a dataset is shown, and how much works on it as an array and in blocks."""
    is_block = works(n5zarr.read_block, folder, "", first_position(folder))
    blocks = ("read, written" if works(writes_block, folder) else "read") if is_block else "no"
    if not works(opened, folder):
        return "no array" if is_block else "an error", "no", blocks
    dtype = opened(folder).dtype
    name = type(dtype).__name__ if dtype.kind == "T" else dtype.name
    shown = "the same" if name == document(folder)["dataType"] else f"`{name}`"
    return shown, "read, written" if works(writes_array, folder) else "read", blocks


def compressions(_present: Rows) -> Rows:
    """Read and write a dataset of each compression in each presentation."""
    return [["N5 `type`", "read", "written", "extra"], *alike_in_one(what_is_done)]


def codecs(_present: Rows) -> Rows:
    """Return the names of the codecs that Zarr sees."""
    return [["N5 `type`", "Zarr v3", "Zarr v2", "portable"], *alike_in_one(what_is_shown)]


def alike_in_one(row_of: Callable[[Path], list[str]]) -> Rows:
    """Make a row for each type; compressors of blosc have one only if they differ."""
    cells = {kind: row_of(folder) for kind, folder in compression_examples().items()}
    rows: Rows = []
    for name in dict.fromkeys(kind.type for kind in cells):
        alike = Counter(tuple(row) for kind, row in cells.items() if kind.type == name)
        usual = alike.most_common(1)[0][0]
        rows.append([str(Kind(name)), *usual])
        rows += [
            [str(kind), *row]
            for kind, row in cells.items()
            if kind.type == name and (tuple(row) != usual or kind.member == "useZlib")
        ]
    return rows


def what_is_done(folder: Path) -> list[str]:
    read = [works(lambda *how: opened(folder, *how)[...], *how) for how in PRESENTATIONS]
    written = [works(writes_array, folder, *how) for how in PRESENTATIONS]
    return [in_all(read), in_all(written), extra_of(folder)]


def what_is_shown(folder: Path) -> list[str]:
    presentations: list[tuple[Any, Any]] = [("zarr", 3), ("zarr", 2), ("portable", 3)]
    return [shown_codec(folder, *how) for how in presentations]


def in_all(results: list[bool]) -> str:
    """Return in which presentations something works, as text."""
    if len(set(results)) == 1:
        return "yes" if results[0] else "no"
    works_in = itertools.compress(PRESENTATIONS, results)
    return ", ".join(f"{codecs} v{zarr_format}" for codecs, zarr_format in works_in)


def extra_of(folder: Path) -> str:
    """Return the name of the extra without which a block is not read."""
    with patch.dict(sys.modules, dict.fromkeys(OPTIONAL)):
        try:
            n5zarr.read_block(folder, "", first_position(folder))
        except N5MissingDependencyError as err:
            (extra,) = re.findall(r"n5zarr\[(\w+)\]", str(err))
            return f"`{extra}`"
    return ""


def shown_codec(folder: Path, codecs: Any, zarr_format: Any) -> str:
    """Return the name of the compressor in the document that Zarr sees."""
    mapping = StoreMapping(N5Store(folder, codecs=codecs, zarr_format=zarr_format))
    if zarr_format == 2:
        compressor = json.loads(mapping[".zarray"])["compressor"]
        names = [compressor["id"]] if compressor else []
    else:
        chain = [codec["name"] for codec in json.loads(mapping["zarr.json"])["codecs"]]
        names = [name for name in chain if name not in ("bytes", "transpose")]
    return ", ".join(f"`{name}`" for name in names) or "none"


def programs(_present: Rows) -> Rows:
    """Return which programs' blocks the tests read, and which programs read those of n5zarr."""
    pairs = {(writer(d["writer"]), plain(d["compression"])) for d in MANIFEST["datasets"]}
    ours = {plain(c) for c in test_peers.COMPRESSIONS.values()}
    z5py = {plain({"type": o["compression"]}) for o in test_peers.Z5PY.values()}
    old = {plain(document(f)["compression"]) for f in datasets_of(DATA / "zarr2_types.n5")}
    read = {
        **{name: {kind for who, kind in pairs if who == name} for name in WRITERS.values()},
        "z5py": z5py,
    }
    read["tensorstore"] |= ours
    read["zarr-python 2"] |= old
    reads_ours = {"tensorstore": ours, "z5py": ours}
    kinds = list(dict.fromkeys(plain({"type": k.type}) for k in compression_examples()))
    kinds.insert(kinds.index(Kind("gzip")) + 1, Kind("gzip", "useZlib"))

    def cell(program: str, kind: Kind) -> str:
        is_read, is_written = kind in read[program], kind in reads_ours.get(program, ())
        return "both" if is_read and is_written else "from" * is_read + "to" * is_written

    rows = [[str(kind), *(cell(program, kind) for program in read)] for kind in kinds]
    return [["N5 `type`", *read], *(row for row in rows if any(row[1:]))]


def plain(compression: dict[str, Any]) -> Kind:
    """Return the name of a compression without the compressor inside of blosc."""
    kind = kind_of(compression)
    return kind if kind.member == "useZlib" else Kind(kind.type)


def writer(given: str) -> str:
    return WRITERS.get(given.partition(" ")[0], given)


def fixtures(_present: Rows) -> Rows:
    """Count the datasets with checksums that each program has written."""
    head = ["written by", "datasets", "data types", "compressions"]
    rows: Rows = []
    for name in dict.fromkeys(d["writer"] for d in MANIFEST["datasets"]):
        given = [d for d in MANIFEST["datasets"] if d["writer"] == name]
        n_types = len({d["dtype"] for d in given})
        n_kinds = len({plain(d["compression"]) for d in given})
        label = {"java-n5": f"Java N5 at {MANIFEST['n5Commit'][:8]}", "hand": "hand"}
        rows.append([label.get(name, name), *map(str, (len(given), n_types, n_kinds))])
    return [head, *sorted(rows, key=lambda row: -int(row[1]))]


def conventions(present: Rows) -> Rows:
    """List the conventions in the order in which they are tried; their descriptions are prose."""
    head = ["convention", "written", "from", "order of lists"]
    prose = {row[0]: row[2:] for row in present}
    return [
        head,
        *(
            [f"`{name}`", "yes" if name in WRITTEN else "", *prose.get(f"`{name}`", ["", ""])]
            for name in dict.fromkeys(each.name for each in CONVENTIONS)
        ),
    ]


TABLES: dict[str, Callable[[Rows], Rows]] = {
    table.__name__: table
    for table in (data_types, compressions, codecs, programs, fixtures, conventions)
}


# --------------------------------------------------------------------------------------- the page


def parse(text: str) -> Rows:
    """Split the rows of a table into cells, without the line below the head."""
    cells = [[cell.strip() for cell in line.split("|")] for line in text.split("\n") if line]
    return cells[:1] + cells[2:]


def formatted(rows: Rows) -> str:
    rule = "|".join(["---"] * len(rows[0]))
    head, *rest = [re.sub(" +", " ", " | ".join(row)).strip() for row in rows]
    return "\n".join(["", head, rule, *rest, "", ""])


def made(text: str) -> str:
    return TABLE.sub(lambda m: m[1] + formatted(TABLES[m[2]](parse(m[3]))) + m[4], text)


if __name__ == "__main__":
    PAGE.write_text(made(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
