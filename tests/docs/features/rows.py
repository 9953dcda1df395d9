"""List the features as lines that run in each library, with the expected results.

What is expected is known from the manifests of the fixtures, from numpy, or from the container that
``tests.docs.migration.compare`` writes without any library; never from n5zarr.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.docs.migration.runner import VALUES, plain

__all__ = ["DATA", "ERROR", "FEATURES", "SHOWN", "Case", "Feature"]

DATA = Path(__file__).parents[2] / "data"
MANIFEST = json.loads((DATA / "java" / "manifest.json").read_text(encoding="utf-8"))
ERROR = object()  # an error is expected
SHOWN = object()  # what is given is what the table shows


@dataclass(frozen=True)
class Case:
    """Lines, of which the last gives a value, and the expected value.

    Before them are those of the library. ``java`` and ``java4`` are folders of ``tests/data``, of
    which ``url`` serves the first; ``c.n5`` is a small container that may be changed.
    """

    name: str
    code: str
    expected: Any


@dataclass(frozen=True)
class Feature:
    """A row of the table: a feature that a library has if all cases are right."""

    title: str
    cases: tuple[Case, ...]


def digest(elements: np.ndarray) -> tuple[str, tuple[int, ...], str]:
    """Compute the same digest as ``digest`` in the lines."""
    data = elements.astype(elements.dtype.newbyteorder(">")).tobytes()
    return elements.dtype.name, elements.shape, hashlib.sha256(data).hexdigest()


def dataset(root: str, path: str) -> tuple[str, tuple[int, ...], str]:
    """Return the expected elements of a dataset of the manifest, in C order."""
    (found,) = (d for d in MANIFEST["datasets"] if (d["root"], d["path"]) == (root, path))
    return found["dtype"], tuple(found["dims"][::-1]), found["sha256"]


def reading(name: str, root: str, path: str) -> Case:
    return Case(name, f'digest(read(java / "{root}", "{path}"))', dataset(root, path))


def given() -> np.ndarray:
    """Return the elements of ``em/s0``, of which a block is missing."""
    values = VALUES.copy()
    values[4:, 3:, 4:] = 0
    return values


def written(name: str, array: str, expected: Any) -> Case:
    code = f'create("c.n5", "x", {array})\n{BACK}read("c.n5", "x")'
    return Case(name, code, [True, plain(expected)])


def document(name: str, old: str, new: str) -> Case:
    """Make a case: read a dataset with a member of its document spelled otherwise."""
    code = f"{EDIT.format(old=old, new=new)}\ndigest(read('c.n5', 'em/s0'))"
    return Case(name, code, digest(given()))


def spelled(name: str, token: str) -> Case:
    """Make a case: change a document in which a value is spelled in some way."""
    edit = EDIT.format(old='"units"', new=f'"foreign": [{token}], "units"')
    code = f"{edit}\nold = file.read_text()\nchange('c.n5', 'em/s0')\n"
    code += f"file.read_text() != old, '[{token}]' in ''.join(file.read_text().split())"
    return Case(name, code, [True, True])


def damaged(name: str, path: str, expected: np.ndarray, damage: str) -> Case:
    """Make a case: read a dataset, damage a block, and read again."""
    before = f"sure(digest(read('c.n5', '{path}')) == {digest(expected)})\n"
    lines = f"file = Path('c.n5/{path}/0/0/0')\ndata = bytearray(file.read_bytes())\n{damage}\n"
    return Case(name, f"{before}{lines}file.write_bytes(data)\nread('c.n5', '{path}')", ERROR)


BACK = 'Path("c.n5/x/attributes.json").exists(), '
EDIT = """file = Path("c.n5/em/s0/attributes.json")
file.write_text(file.read_text().replace({old!r}, {new!r}, 1))"""
MASK = (VALUES % 3 == 0).astype("u1")
DATES = np.array(["2024-02-29T12:00:00", "1969-12-31T23:59:59"], "M8[s]")
IS_ZARR_3 = """import zarr
assert isinstance(opened("c.n5", "em/s0"), zarr.Array) and zarr.__version__ >= "3"
True"""
ZARR_V2 = """Path("d.zarr/a").mkdir(parents=True)
Path("d.zarr/.zgroup").write_text(json.dumps({"zarr_format": 2}))
Path("d.zarr/a/.zarray").write_text(json.dumps({"zarr_format": 2, "shape": [2, 3], "order": "C",
    "chunks": [2, 3], "dtype": "|u1", "compressor": None, "fill_value": 0, "filters": None}))
Path("d.zarr/a/0.0").write_bytes(bytes(range(6)))
sorted(anything("c.n5", "em/mask").shape), anything("d.zarr", "a").tolist()"""
OVER_HTTP = 'digest(read(f"{url}/compressions.n5", "gzip/u16"))'
PICKLED = "array = opened('c.n5', 'em/s0')\ndigest(elements(pickle.loads(pickle.dumps(array))))"
OF_Z5PY = """with z5py.File('c.n5', 'r') as file:
    dataset = file['em/s0']
digest(dataset.read_subarray((0, 0, 0), dataset.shape))"""
AXES = EDIT.format(old='"units"', new='"axes": ["x", "y", "z"], "units"')
NAMES = {"z": "nm", "y": "nm", "x": "nm"}
POSITIONS = {"z": [0, 40, 80, 120, 160], "y": [0, 4, 8, 12, 16, 20], "x": [0, 4, 8, 12, 16, 20, 24]}
CHANGED = """payload = bytearray(zlib.decompress(data[26:-8], -15))  # between headers and checksum
payload[1] ^= 1
stream = zlib.compressobj(wbits=-15)
data[26:-8] = stream.compress(payload) + stream.flush()"""
(VARLENGTH,) = (v for v in MANIFEST["varlength"] if v["path"] == "u16")
(OBJECT,) = (v for v in MANIFEST["varlength"] if v["path"] == "object")
(TEXT,) = (v for v in MANIFEST["strings"] if v["path"] == "simple")

ROWS: dict[str, list[Case]] = {
    "Opens arrays as `zarr.Array` of zarr-python 3": [Case("", IS_ZARR_3, True)],
    "Opens Zarr v2 by the same call": [Case("", ZARR_V2, [[5, 6, 7], [[0, 1, 2], [3, 4, 5]]])],
    "Python": [Case("", 'metadata(distribution)["Requires-Python"]', SHOWN)],
    "Reads each compression of Java": [
        *(
            reading(name, "compressions.n5", f"{name}/u16")
            for name in ("raw", "gzip", "bzip2", "xz", "lz4", "zstd", "blosc")
        ),
        reading("gzip with `useZlib`", "compressions.n5", "zlib/u16"),
    ],
    "Reads truncated, padded, smaller, larger blocks": [
        reading("truncated edges", "dtypes.n5", "uint16/3d"),
        reading("padded edges", "blocks.n5", "full-edges"),
        reading("smaller", "blocks.n5", "smaller-block"),
        reading("larger", "blocks.n5", "larger-block"),
    ],
    "Reads text, varlength and object blocks": [
        Case(
            "text", f'read(java / "strings.n5", "{TEXT["path"]}").tolist()', TEXT["valuesN5Order"]
        ),
        Case(
            "varlength",
            'np.ravel(read_block(java / "varlen.n5", "u16", (0, 0))).tolist()',
            VARLENGTH["blocks"][0]["values"],
        ),
        Case(
            "object",
            'bytes(read_block(java / "varlen.n5", "object", (0,))).hex()',
            OBJECT["blocks"][0]["hex"],
        ),
    ],
    "Lists groups without `attributes.json`": [
        Case("", 'children(java / "tree.n5", "a/b")', MANIFEST["treeList"]["a/b"])
    ],
    'Reads comments, NaN, `"4"` for 4 in JSON': [
        document("comments", "{", "/* of Fiji */ {"),
        document("NaN", '"units"', '"offset": [NaN, 0, 0], "units"'),
        document('`"4"`', "[4, 3, 2]", '["4", "3", "2"]'),
    ],
    "Keeps the spelling of values that it does not change": [
        *(spelled(f"`{token}`", token) for token in ("1.0", "1.50", "1e-9")),
        spelled("long integers", "123456789012345678901"),
    ],
    "Writes numbers, bool, dates, a fill value": [
        written("numbers", "values", VALUES),
        written("bool", "np.array([[True, False]])", np.array([[True, False]])),
        Case(
            "dates",
            f'create("c.n5", "x", np.array({DATES.astype(str).tolist()}, "M8[s]"))\n'
            f'{BACK}digest(read("c.n5", "x"))',
            [True, [*digest(DATES)]],
        ),
        Case(
            "fill value",
            f'create_filled("c.n5", "x", 7)\n{BACK}read("c.n5", "x")',
            [True, plain(np.full((2, 3), 7, "u2"))],
        ),
    ],
    "Reads over HTTP": [Case("", OVER_HTTP, dataset("compressions.n5", "gzip/u16"))],
    "Shows names, units and positions of axes": [
        Case("names", f"{AXES}\nsorted(axes('c.n5', 'em/s0'))", sorted(NAMES)),
        Case("units", f"{AXES}\naxes('c.n5', 'em/s0')", NAMES),
        Case(
            "positions in xarray",
            f"{AXES}\ndata = coordinates('c.n5', 'em/s0')\n"
            "{n: data[n].values.tolist() for n in data.coords}",
            POSITIONS,
        ),
    ],
    "Refuses damaged blocks and Java 4's shards": [
        damaged("cut block", "em/s0", given(), "del data[-12:]"),
        damaged("changed element", "em/s0", given(), CHANGED),
        damaged("cut raw block", "em/mask", MASK, "del data[-12:]"),
        Case("shards", 'read(java4 / "codecs.n5", "shard-END-0")', ERROR),
    ],
    "Runs programs that name zarr 2, z5py, after changed imports": [
        Case("zarr 2", "digest(zarr2.open('c.n5', 'r').em.s0[:])", digest(given())),
        Case("z5py", OF_Z5PY, digest(given())),
    ],
    "Pickles arrays": [Case("", PICKLED, digest(given()))],
}
FEATURES = tuple(Feature(title, tuple(cases)) for title, cases in ROWS.items())
