"""What docs/design/recipes.md describes is added to a copy, as the page says, and then works."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.outputs import python
from tests.structure import REPOSITORY

PAGE = REPOSITORY / "docs/design/recipes.md"


class Recipe(NamedTuple):
    """A chapter of the page, followed."""

    chapter: str  # its heading
    new: Mapping[str, str]  # modules, and their text
    changes: Mapping[str, Mapping[str, str]]  # modules, each with texts and what replaces them
    job: str  # a program for the copy, in an empty folder


COMPRESSION = Recipe(
    "Add a compression",
    {
        "codecs/flip.py": '''
"""``flip``: all bits of a byte that are in a mask are flipped."""

import numpy as np

from n5zarr.codecs.compression import Codec
from n5zarr.format.compression import Flip


def flipped(data, compression):
    return (np.frombuffer(data, "u1") ^ compression.mask).tobytes()


class FlipCodec(Codec[Flip]):
    passes = False

    def compress(self, data, compression, item_size):
        return flipped(data, compression)

    def decompress(self, payload, n_bytes, compression):
        return flipped(payload, compression)

    def store(self, data, compression):
        return data

    def numcodec(self, compression):
        return None
'''
    },
    {
        "format/compression.py": {
            "\ntype Compression = Raw |": '''
@dataclass(frozen=True, kw_only=True)
class Flip:
    """Flipped bits: ``{"type":"flip","mask":255}``."""

    type: ClassVar[str] = "flip"
    mask: int = _integer("mask", 255, 0, 255)


type Compression = Flip | Raw |''',
            "for cls in (Raw,": "for cls in (Flip, Raw,",
        },
        "codecs/compress.py": {
            "from n5zarr.codecs.gzip": "from n5zarr.codecs.flip import FlipCodec\n"
            "from n5zarr.codecs.gzip",
            '"raw": RawCodec(),': '"flip": FlipCodec(), "raw": RawCodec(),',
        },
    },
    """
array = n5zarr.create_array("a.n5", path="a", data=data, chunks=(3, 5, 7),
                            compression={"type": "flip", "mask": 15})
array[2:5, 1, ::3] = data[2:5, 1, ::3]
stored = pathlib.Path("a.n5/a/0/0/0").read_bytes()
plain = data[:3, :5, :7].astype(">u2").tobytes()
assert stored[16:] == bytes(byte ^ 15 for byte in plain)
assert json.loads(pathlib.Path("a.n5/a/attributes.json").read_text())["compression"] == {
    "type": "flip", "mask": 15}
for found in (n5zarr.open("a.n5/a"), zarr.open(n5zarr.N5Store("a.n5"), path="a", mode="r")):
    assert (found[...] == data).all()
n5zarr.convert("a.n5", "b.zarr")
assert (zarr.open("b.zarr", mode="r")["a"][...] == data).all()
n5zarr.convert("b.zarr", "c.n5", compression={"type": "flip"})
assert (n5zarr.open("c.n5/a")[...] == data).all()
assert not n5zarr.validate("c.n5", deep=True).findings
""",
)
CONVENTION = Recipe(
    "Add a convention",
    {
        "conventions/lens.py": '''
"""Read ``lens``: the distance between elements along each axis, in micrometres; N5 order."""

from n5zarr.conventions.model import Convention, Geometry, axes_of, numbers


def read(node):
    scale = numbers(node.attributes.get("lens"), node.ndim)
    if scale is None:
        return None
    axes = axes_of(node.ndim, names=node.names, scale=scale, translation=(), units="um")
    return Geometry(axes=axes)


LENS = Convention(name="lens", read=read, per_axis=("lens",), placing_keys=("lens",))
'''
    },
    {
        "conventions/find.py": {
            "    imagej,\n": "    imagej,\n    lens,\n",
            "    imagej.IMAGEJ,": "    lens.LENS,\n    imagej.IMAGEJ,",
        }
    },
    """
array = n5zarr.create_array("a.n5", path="a", data=data, chunks=(3, 5, 7))
n5zarr.set_attribute("a.n5", "a", "lens", [2, 3, 4])
found = n5zarr.geometry(n5zarr.open("a.n5/a"))
assert (found.convention, found.scale) == ("lens", (4, 3, 2))
positions = xr.open_dataset("a.n5", engine="n5", group="a")
assert positions["z"].values[:3].tolist() == [0, 4, 8] and positions["z"].attrs["units"] == "um"
n5zarr.convert("a.n5/a", "b.zarr", ome=True)
image = json.loads(pathlib.Path("b.zarr/zarr.json").read_text())["attributes"]["ome"]
(level,) = image["multiscales"][0]["datasets"]
assert level["coordinateTransformations"][0]["scale"] == [4, 3, 2]
""",
)
ROOM = Recipe(
    "Add a room, or a source of conversions",
    {
        "gray/__init__.py": '"""Images of netpbm: a header, and rows of bytes."""\n',
        "gray/source.py": '''
"""Find the image in a file of netpbm."""

import pathlib
from dataclasses import dataclass

import numpy as np

from n5zarr.images.source import ArraySource, SourceTree


@dataclass(frozen=True)
class Rows:
    file: str

    @property
    def shape(self):
        return tuple(map(int, reversed(pathlib.Path(self.file).read_bytes().split()[1:3])))

    def __getitem__(self, box):
        data = pathlib.Path(self.file).read_bytes()[-np.prod(self.shape):]
        return np.frombuffer(data, "u1").reshape(self.shape)[box]


def gray_tree(file, path=""):
    if path or pathlib.Path(file).is_dir():
        return None
    values = Rows(file)
    values.shape  # a missing file is an error
    image = ArraySource(name=file, values=values, dtype=np.dtype("u1"), chunks=(5, 7),
                        dimension_names=["y", "x"])
    return SourceTree(file, {"": image}, {})
''',
    },
    {
        "rooms.py": {'"hdf5": "n5zarr': '"gray": "n5zarr.gray.source:gray_tree",\n"hdf5": "n5zarr'},
        "format/foreign.py": {
            '"bdv", "zip"]': '"bdv", "zip", "gray"]',
            '    "zip": re.compile': r'    "gray": re.compile(r".\.pgm\Z"),'
            '\n    "zip": re.compile',
        },
    },
    """
image = (data[0] % 251).astype("u1")
pathlib.Path("a.pgm").write_bytes(b"P5 17 13 255\\n" + image.tobytes())
n5zarr.convert("a.pgm", "a.n5", n_workers=2)
array = n5zarr.open("a.n5")
assert (array[...] == image).all() and array.chunks == (5, 7)
try:
    n5zarr.convert("missing.pgm", "b.n5")
except FileNotFoundError:
    pass
else:
    raise AssertionError
""",
)
COMMAND = Recipe(
    "Add an option or a command",
    {
        "cli/count.py": '''
"""``n5zarr count``."""


def count(container: str, deep: bool = False) -> None:
    """Count the arrays in a container.

    Parameters
    ----------
    container : str
        The container.
    deep : bool, optional
        Whether to count those in groups, too.
    """
    import n5zarr

    members = n5zarr.open_group(container).members(None if deep else 0)
    print(sum(hasattr(node, "shape") for _, node in members))
'''
    },
    {
        "cli/app.py": {'"tree": "tree.tree",': '"tree": "tree.tree",\n"count": "count.count",'},
        "tools/validate/check.py": {
            "    deep: bool = False,\n": "    deep: bool = False,\n    limit: int | None = None,\n",
            "    deep : bool, optional\n": """    limit : int, optional
        Show at most so many.
    deep : bool, optional
""",
        },
    },
    """
n5zarr.create_array("a.n5", path="g/a", data=data)
n5zarr.create_array("a.n5", path="b", data=data)

def said(*words):
    command = [sys.executable, "-m", "n5zarr", *words]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout

subprocess.run([sys.executable, "-m", "tests.prepared"], check=True, env={
    **os.environ, "PYTHONPATH": os.pathsep.join(map(os.environ.get, ("PYTHONPATH", "REPOSITORY"))),
})
assert (said("count", "a.n5"), said("count", "a.n5", "--deep")) == ("1\\n", "2\\n")
assert "those in groups, too" in said("count", "--help")
assert "--limit" in said("validate", "--help") and "at most so many" in said("validate", "--help")
said("validate", "a.n5", "--limit", "3")
""",
)
BACKEND = Recipe(
    "Add a storage backend",
    {},
    {
        "servers/opening.py": {
            '    if scheme == "zip" and not': """    if scheme == "shelf":
        return SHELVES.setdefault(url, MemoryStore())
    if scheme == "zip" and not""",
            "_PACKAGES = {": "SHELVES: dict[str, Store] = {}\n_PACKAGES = {",
            "import ObjectStore, ZipStore": "import MemoryStore, ObjectStore, ZipStore",
        }
    },
    """
from zarr.storage import LocalStore, WrapperStore

class OwnStore(WrapperStore):
    pass

for place in ("shelf://one/a.n5", OwnStore(LocalStore("own.n5"))):
    array = n5zarr.create_array(place, path="g/a", data=data, chunks=(3, 5, 7), axes="zyx")
    array[2:5, 1, ::3] = data[2:5, 1, ::3]
    for found in (n5zarr.open(place, path="g/a"),
                  zarr.open(n5zarr.N5Store(place), path="g/a", mode="r")):
        assert (found[...] == data).all()
    n5zarr.convert(place, f"b{len(str(place))}.zarr")
    assert (zarr.open(f"b{len(str(place))}.zarr", mode="r")["g/a"][...] == data).all()
assert pathlib.Path("own.n5/g/a/2/2/3").exists()
""",
)
RECIPES = (COMPRESSION, CONVENTION, ROOM, COMMAND, BACKEND)
START = """
import json, os, pathlib, subprocess, sys
import numpy as np, xarray as xr, zarr, n5zarr
data = np.random.default_rng(0).integers(0, 999, (11, 13, 17)).astype("u2")
"""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.chapter)
def test_a_recipe_works(recipe: Recipe, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "n5zarr"
    shutil.copytree(REPOSITORY / "n5zarr", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in recipe.new.items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(text)
    for name, changes in recipe.changes.items():
        text = (copy / name).read_text()
        for old, new in changes.items():
            assert text.count(old) >= 1, f"{name} has no {old!r}"
            text = text.replace(old, new, 1)
        (copy / name).write_text(text)
    program = tmp_path / "program.py"
    program.write_text(f"{START}assert n5zarr.__file__.startswith({str(copy)!r})\n{recipe.job}")
    places = {"PYTHONPATH": str(copy.parent), "REPOSITORY": str(REPOSITORY)}
    python(program, cwd=tmp_path, env=places)


def test_each_chapter_of_the_page_is_tried() -> None:
    chapters = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert chapters == [recipe.chapter for recipe in RECIPES]
