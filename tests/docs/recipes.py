"""What is there after each recipe of the cookbook, read by other programs where they can."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import h5py
import numpy as np
import tensorstore
import tifffile
import z5py
import zarr
from PIL import Image
from yaozarrs import validate_zarr_store

import n5zarr
from tests.contract.bigstitcher import SETUPS, elements
from tests.docs.kitchen import LOST, opened, read, volume

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE = (40, 96, 128)
OWN = ("dimensions", "blockSize", "dataType", "compression")
EM = [read(f"{n5zarr.sample_path()}/em/s{level}") for level in range(3)]
LABELS = read(f"{n5zarr.sample_path()}/labels/s0")
HALF = volume()
HALF[16:] = 0

# arrays that recipes write, members of documents, and names that they define; what they hold
MADE: dict[str, dict[str, Any]] = {
    "Open it in Fiji": {"fiji.n5/em/s0": EM[0], "fiji.n5/em/s0: compression/type": "gzip"},
    "Open it with BioIO": {"plane": EM[0][20]},
    "Read one slice": {"plane": EM[0][20]},
    "Read a box at a position in nanometres": {"box": EM[0][5:16, 10:31, 50:100]},  # 20, 8, 8 nm
    "x and y are swapped, or the axis order is wrong": {"array": EM[0].T},
    "A maximum projection": {"projection": EM[0].max(0)},
    "Out of memory: the volume is larger than RAM": {"scaled.n5/em/s0": EM[0] / np.float32(255)},
    "TIFF stack to N5": {"stack.n5/em/s0": volume()},
    "HDF5 to N5": {
        "scan.n5/em/s0": volume(),
        "scan.n5/em/s0: resolution": [0.004, 0.004, 0.04],
    },
    "Convert many files: a folder in one batch": {
        f"converted/day{n}.n5/raw": volume(n) for n in range(2)
    },
    "NWB from HDF5 to N5": {"session.n5/acquisition/raw/data": volume()[:, :3, 0]},
    "OME-Zarr to N5": {"image.n5/s0": volume(), "image.n5/s0: transform/scale": [40, 4, 4]},
    "Crop: cut out a subvolume": {
        "crop.n5/em/s0": EM[0][4:21, 10:57, 30:91],
        "crop.n5/em/s0: transform/translate": [80, 80, 240],
    },
    "Change the voxel size or pixel size": {
        "sample.n5/em/s0: transform/scale": [25, 8, 8],
        "sample.n5/em/s1: transform/scale": [50, 16, 16],
    },
    "A mask or segmentation as a label multiset for Paintera": {
        "paintera.n5/labels: painteraData": {"type": "label"},
        "paintera.n5/labels/data/s0: isLabelMultiset": True,
        "paintera.n5/labels: maxId": LABELS.max(),
    },
    "Recompress a container: smaller on disk, no empty blocks": {
        "mine.n5/em/s0": HALF,
        "mine.n5/em/s0: compression/type": "zstd",
    },
    "Smaller or larger blocks": {
        "mine.n5/em/s0": HALF,
        "mine.n5/em/s0: blockSize": [32, 32, 32],
    },
    "Zarr to N5": {"image.n5/em": volume()},
    "Restore lost or damaged blocks from a backup": {"damaged.n5/em/s0": EM[0]},
    "Convert in a SLURM job array, without dask": {
        "parts.zarr/labels/s0": LABELS,
        **{f"parts.zarr/em/s{level}": EM[level] for level in range(3)},
    },
    "Disk full, or a killed job: resume a conversion": {
        f"stopped.zarr/em/s{level}": EM[level] for level in range(3)
    },
    "dask on a cluster": {"cluster.zarr/em/s0": EM[0]},
}
# what recipes print
SAID = {
    "Minimum, maximum and histogram without reading everything": [
        f"{EM[0].min()} to {EM[0].max()}"
    ],
    "Read a public bucket without an account": [f"s0 {SAMPLE}", "fibsem-uint16"],
    "Is the container damaged or corrupt?": ["no problems"],
    "Black cubes: lost blocks": ["missing-blocks", "26 of 27 blocks", "1/1/1"],
}


class Done(NamedTuple):
    """A recipe that was followed: its text, what it printed, and the names that it defined."""

    recipe: str
    printed: str
    names: dict[str, Any]


CHECKS: dict[str, Callable[[Done], None]] = {}


def after(title: str) -> Callable[[Callable[[Done], None]], Callable[[Done], None]]:
    """Register the check of a recipe."""

    def register(check: Callable[[Done], None]) -> Callable[[Done], None]:
        CHECKS[title] = check
        return check

    return register


def document(path: str) -> Any:
    return json.loads(Path(path, "attributes.json").read_text())


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(found), expected)


def said(done: Done, *words: str) -> None:
    """Check that the recipe printed some words, wherever its lines end."""
    text = " ".join(done.printed.split())
    assert [word for word in words if word not in text] == [], text


def check(title: str, done: Done) -> None:
    """Check what a recipe has written, defined and printed."""
    for name, expected in MADE.get(title, {}).items():
        place, is_member, member = name.partition(": ")
        if is_member:
            assert reduce(getitem, member.split("/"), document(place)) == expected
        elif ".zarr/" in place:
            same(zarr.open_array(place, mode="r"), expected)
        else:
            same(done.names[place] if place in done.names else read(place), expected)
    said(done, *SAID.get(title, ()))
    CHECKS.get(title, said)(done)


@after("What is in this N5 folder?")
def _(done: Done) -> None:
    for level in range(3):
        said(done, f"s{level} {EM[level].shape}")
    stored = [p for p in Path("sample.n5/em/s0").rglob("*") if p.is_file()]
    said(done, f"{len(stored) - 1} of {3 * 3 * 3} blocks")


@after("How big is a dataset: shape, voxel size, units, size on disk")
def _(done: Done) -> None:
    given = document("sample.n5/em/s0")
    said(done, str(SAMPLE), str(given["dimensions"])[1:-1], "nm", given["compression"]["type"])


@after("A picture on a machine without a screen")
def _(done: Done) -> None:
    with Image.open("em.png") as picture:
        assert max(picture.size) == 400


@after("A figure with axes in micrometres for a paper")
def _(done: Done) -> None:
    with Image.open("figure.png") as picture:
        assert min(picture.size) > 400


@after("Read attributes")
def _(done: Done) -> None:
    given = document("sample.n5/em/s0")
    _, _, rest = done.printed.partition(f"\n{given['transform']['scale'][1]}\n")
    assert json.loads(rest).items() >= {k: v for k, v in given.items() if k not in OWN}.items()


def answers(done: Done, *paths: str) -> list[bytes]:
    """Run the command of a recipe, which serves until it is stopped, and ask it for paths."""
    (line,) = re.findall(r"^n5zarr (?:serve|view) .*", done.recipe, re.MULTILINE)
    _, *words = shlex.split(line)
    words = [word if word != "8000" else "0" for word in words]  # which may be taken here
    quiet = ["--no-browser"] if words[0] == "view" else []
    command = [sys.executable, "-m", "n5zarr", *words, *quiet]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            url = next(filter(None, (re.search(r"http://\S+?:\d+/", s) for s in started.stdout)))[0]
            url = url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - to all, as the recipe says
            return [urllib.request.urlopen(url + path).read() for path in paths]  # noqa: S310
        finally:
            started.terminate()


@after("Open it in Neuroglancer in the browser")
def _(done: Done) -> None:
    (served,) = answers(done, "zarr3/em/s0/zarr.json")
    assert json.loads(served)["shape"] == [*SAMPLE]


@after("A colleague with only a browser")
def _(done: Done) -> None:
    page, stored = answers(done, "", "n5/em/s0/attributes.json")
    assert b"em/s0" in page
    assert json.loads(stored) == document("sample.n5/em/s0")


@after("The image is black or too dark in a viewer")
def _(done: Done) -> None:
    said(done, f"{EM[0].min()} to {EM[0].max()}")
    (served,) = answers(Done("n5zarr serve sample.n5", "", {}), "ome/em/zarr.json")
    (channel,) = json.loads(served)["attributes"]["ome"]["omero"]["channels"]
    assert (channel["window"]["start"], channel["window"]["end"]) == (90, 180)


@after("Open it in napari")
def _(done: Done) -> None:
    assert [line.split()[0] for line in done.printed.splitlines()] == ["image", "labels"]
    same(done.names["data"], LABELS)  # of the last one


@after("Open the pyramid level that fits")
def _(done: Done) -> None:
    same(done.names["ds"].s1, EM[1])  # 8, 16 and 32 nm


@after("A script for zarr 2 with zarr.N5Store")
def _(done: Done) -> None:
    same(done.names["root"]["em/s0"], EM[0])


@after("Random patches for training with torch or JAX")
def _(done: Done) -> None:
    for name, whole in (("batch", EM[0]), ("truth", LABELS)):
        for patch, start in zip(done.names[name], done.names["starts"], strict=True):
            same(patch, whole[tuple(slice(a, a + 32) for a in start)])


@after("Predict with many workers, and go on after a kill")
def _(done: Done) -> None:
    expected = np.where(EM[0] > 100, EM[0], 0)
    same(read("predicted.n5/em/s0"), expected)
    said(done, "27 blocks", "no problems")
    assert document("predicted.n5/em/s0")["units"] == document("sample.n5/em/s0")["units"]
    (line,) = re.findall(r"With dask: `(.*)`", done.recipe)
    lines = [
        "import n5zarr",
        "from distributed import Client",
        "from predict import predict",
        'boxes = n5zarr.stored_blocks("predicted.n5/em/s0", missing=True, slices=True)',
        "with Client(processes=False, dashboard_address=None) as client:",
        f"    {line}",
    ]
    Path("client.py").write_text("\n".join(lines))
    for ways in ([("client.py", "")], [("task.py", task) for task in "01"]):
        for name in ("0/0/0", "1/1/1", "2/0/2"):
            Path("predicted.n5/em/s0", name).unlink()
        for script, task in ways:
            slurm = os.environ | {"SLURM_ARRAY_TASK_ID": task}
            subprocess.run([sys.executable, script], env=slurm, check=True)
        same(read("predicted.n5/em/s0"), expected)


@after("uint64 labels for torch")
def _(done: Done) -> None:
    assert done.names["labels"].dtype == np.int64
    same(done.names["labels"], LABELS)


@after("Read a private bucket with credentials")
def _(done: Done) -> None:
    assert done.names["array"].shape == SAMPLE
    assert done.names["array"][20].std() > 0


@after("Download a part of OpenOrganelle: a crop of a dataset online")
def _(done: Done) -> None:
    part = read("hela.n5/em/fibsem-uint16/s0")
    assert part.shape == SAMPLE
    assert part[:16, :40, :50].all()
    assert not part[16:].any()


@after("Upload a container to an S3 bucket")
def _(done: Done) -> None:
    keys = {"aws_region": "us-east-1", "aws_credentials": {"type": "environment"}}
    place: Any = {"driver": "s3", "bucket": "lab", "path": "upload.n5/em/s0/", **keys}
    place["endpoint"] = os.environ["AWS_ENDPOINT_URL"]
    found = tensorstore.open({"driver": "n5", "kvstore": place}).result()
    same(found.read().result().T, EM[0])


@after("A colleague with plain zarr reads N5 in a bucket")
def _(done: Done) -> None:
    group: Any = zarr.open_group(done.names["store"], mode="r")
    assert group["em/s0/s0"][20].std() > 0


@after("A colleague with xarray reads N5 in a bucket")
def _(done: Done) -> None:
    found = done.names["ds"]
    assert found.s0.shape == SAMPLE
    assert found.x.attrs["units"] == "nm"
    assert float(found.x[1] - found.x[0]) == 8


@after("An NWB session on a server")
def _(done: Done) -> None:
    same(done.names["electrode"], volume()[10:20, 1, 0])
    same(done.names["raw"].data[:], volume()[:, :3, 0])


@after("Make the folder itself Zarr and N5 at once")
def _(done: Done) -> None:
    (line,) = re.findall("uvx --from zarr-n5 (.+)", done.recipe)
    name, *words = line.split()
    script = Path(sys.executable).with_name(name)  # zarr-n5 is installed here
    subprocess.run([script, *words], check=True, capture_output=True)
    given = json.loads(Path("sample.n5/em/s0/zarr.json").read_text())
    assert given["shape"] == document("sample.n5/em/s0")["dimensions"]


@after("numpy to N5 with axes, units and voxel size")
def _(done: Done) -> None:
    found = opened("new.n5/em/s0")
    assert found.domain.labels == ("x", "y", "z")
    assert [str(unit) for unit in found.dimension_units] == ["4 nm", "4 nm", "40 nm"]
    same(found.read().result().T, done.names["volume"])


@after("xarray or dask to N5")
def _(done: Done) -> None:
    same(read("dask.n5/em/s0"), done.names["volume"].compute())


@after("Append time points")
def _(done: Done) -> None:
    movie = read("movie.n5/s0")
    assert movie.shape == (3, 96, 128)
    same(movie[:, 95, 127], [0, 1, 2])


@after("Write from many processes at once")
def _(done: Done) -> None:
    same(read("big.n5/s0")[:, 63, 63], np.repeat([0, 16, 32], 16))


@after("Set, change or remove an attribute")
def _(done: Done) -> None:
    assert document("sample.n5/em/s0") == document(f"{n5zarr.sample_path()}/em/s0")


@after("Copy attributes to another dataset")
def _(done: Done) -> None:
    copied = document("sample.n5/labels/s0")
    given = {k: v for k, v in document("sample.n5/em/s0").items() if k not in OWN}
    assert given
    assert copied.items() >= given.items()
    assert copied["dataType"] == "uint64"


@after("Rename or move a dataset")
def _(done: Done) -> None:
    assert z5py.File("sample.n5", "r")["cells/s0"].shape == SAMPLE
    assert not Path("sample.n5/labels").exists()


@after("Delete a dataset")
def _(done: Done) -> None:
    assert sorted(z5py.File("sample.n5", "r")["em"].keys()) == ["s0", "s1"]


@after("TIFF stack to N5 for BigStitcher")
def _(done: Done) -> None:
    xml = Path("tiles.xml").read_text()
    assert "<size>0.5 0.5 2.0</size>" in " ".join(xml.split())
    for n in range(2):
        same(read(f"tiles.n5/setup{n}/timepoint0/s0"), volume(n))


@after("Read a BigStitcher dataset.xml in Python")
def _(done: Done) -> None:
    same(done.names["tree"]["setup0/s0"]["data"][3], elements(0, 8, 0))  # at the fourth time point


@after("CZI, LIF or ND2 to N5")
def _(done: Done) -> None:
    copy = read("cells.n5/image0/s0")
    assert copy.shape == (1, 1, 5, 53, 67)
    same(copy[0, 0], volume(0, (5, 53, 67)))
    written = document("cells.n5/image0/s0")
    assert written["axes"] == ["x", "y", "z", "c", "t"]
    np.testing.assert_allclose(written["resolution"], (0.2, 0.3, 1.5, 1, 1), rtol=1e-6)
    assert written["units"] == ["um", "um", "um", "", ""]
    assert written["coordinateArrays"] == {"c": ["0"]}


@after("An NWB session with an incomplete row")
def _(done: Done) -> None:
    from n5zarr.hdmf import NWBN5IO  # noqa: PLC0415 - takes seconds

    trials = NWBN5IO.read_nwb("cut.n5").trials
    assert trials["start_time"][:].tolist() == [0.0, 1.0]
    assert [list(tags) for tags in trials["tags"][:]] == [["a"], ["b", "c"]]


@after("N5 to Zarr v3")
def _(done: Done) -> None:
    assert Path("sample.zarr/em/s0/zarr.json").exists()
    same(zarr.open_group("sample.zarr", mode="r")["em/s0"], EM[0])


@after("N5 to Zarr v2")
def _(done: Done) -> None:
    same(opened("old.zarr/em/s0", "zarr").read().result(), EM[0])


@after("N5 to OME-Zarr")
def _(done: Done) -> None:
    validate_zarr_store("sample.ome.zarr/em")
    ome: Any = zarr.open_group("sample.ome.zarr/em", mode="r").attrs["ome"]
    image = ome["multiscales"][0]
    assert image["datasets"][0]["coordinateTransformations"][0]["scale"] == [20, 8, 8]
    same(zarr.open_array("sample.ome.zarr/em/s0", mode="r"), EM[0])


@after("A BigStitcher project to OME-Zarr")
def _(done: Done) -> None:
    images: Any = zarr.open_group("views.zarr", mode="r")
    name = SETUPS[0].name.replace(" ", "_")
    same(images[f"{name}/s0"][3], elements(0, 8, 0))
    assert Path("moved/dataset.ome.zarr").is_dir()
    assert "bdv.multimg.zarr" in Path("moved/dataset.xml").read_text()


@after("A small BigStitcher project to try things")
def _(done: Done) -> None:
    xml = ElementTree.parse("project/dataset.xml").getroot()  # noqa: S314 - our own
    named = xml.findtext("SequenceDescription/ImageLoader/n5")
    assert named == "dataset.n5"
    first = xml.find("SequenceDescription/ViewSetups/ViewSetup")
    assert first is not None
    view = read(f"project/{named}/setup{first.findtext('id')}/timepoint0/s0")
    assert list(view.shape[::-1]) == [int(n) for n in str(first.findtext("size")).split()]


@after("Labels beside an image")
def _(done: Done) -> None:
    validate_zarr_store("both.zarr/em")
    ome: Any = zarr.open_group("both.zarr/em/labels", mode="r").attrs["ome"]
    assert ome["labels"] == ["cells"]
    same(zarr.open_array("both.zarr/em/labels/cells/s0", mode="r"), LABELS)


@after("Convert only one level of a pyramid")
def _(done: Done) -> None:
    found = zarr.open_group("small.zarr", mode="r")
    same(found["em/s1"], EM[1])
    assert "em/s0" not in found


@after("Convert only some datasets")
def _(done: Done) -> None:
    found = zarr.open_group("some.zarr", mode="r")
    assert sorted(p for p, _ in found.members(max_depth=None)) == ["em", "em/s1", "em/s2"]


@after("Predict in overlapping tiles")
def _(done: Done) -> None:
    expected = np.maximum(EM[0], np.roll(EM[0], 1, axis=2))
    same(read("predicted.n5/em/s0")[:, :, 1:], expected[:, :, 1:])


@after("Too many files, or inodes (quota)")
def _(done: Done) -> None:
    found = zarr.open_array("few.zarr/em/s0", mode="r")
    assert found.shards is not None
    same(found, EM[0])
    assert sum(file.is_file() for file in Path("few.zarr/em/s0").rglob("*")) == 2


@after("N5 to TIFF for ImageJ")
def _(done: Done) -> None:
    with tifffile.TiffFile("em.tif") as file:
        assert file.is_imagej
        assert file.series[0].axes == "ZYX"
        same(file.asarray(), EM[0])


@after("N5 to HDF5")
def _(done: Done) -> None:
    with h5py.File("em.h5") as file:
        same(file["em"], EM[0])


@after("A pyramid for one large volume")
def _(done: Done) -> None:
    same(read("pyramid.n5/vol/s0"), volume())
    # voxels of 4, 4, 40 nm
    halved = tensorstore.downsample(opened("pyramid.n5/vol/s0"), [2, 2, 1], method="mean")
    same(read("pyramid.n5/vol/s1"), halved.read().result().T)


@after("Downsample labels by mode")
def _(done: Done) -> None:
    # voxels of 8, 8, 20 nm
    halved = tensorstore.downsample(opened("sample.n5/labels/s0"), [2, 2, 1], method="mode")
    same(read("sample.n5/labels/s1"), halved.read().result().T)
    assert Path("sample.n5/labels/s2").is_dir()


@after("Recompress a container: smaller on disk, no empty blocks")
def _(done: Done) -> None:
    assert not list(Path("mine.n5/em/s0").glob("*/*/[12]"))  # z from 16 on


@after("Read shards of Java N5 4")
def _(done: Done) -> None:
    said(done, "shards of 32,48,64 elements (z, y, x)", "index at the end", str(volume()[0, :8, 0]))
    same(done.names["array"][...].T, volume())
    same(read("plain.n5/em/s0"), volume())
    assert document("plain.n5/em/s0")["blockSize"] == document("java.n5/em/s0")["blockSize"]


@after("Check a huge container in a SLURM job array")
def _(done: Done) -> None:
    stored = [p for p in Path("sample.n5").rglob("*") if p.is_file()]
    blocks = [p for p in stored if p.suffix != ".json"]
    *_, finished = (line for line in done.printed.splitlines() if "no problems" in line)
    assert f"3 groups, 4 datasets, {len(blocks)} blocks" in finished  # of all parts


@after("Disk full, or a killed job: resume a conversion")
def _(done: Done) -> None:
    assert not [*Path("stopped.zarr").rglob("n5zarr-incomplete.json")]


@after("A dead job left files behind")
def _(done: Done) -> None:
    assert not [*Path("dead.n5").rglob("*.partial"), *Path("dead.n5").rglob("*.__lock")]
    assert Path("dead.n5", LOST).exists()


@after("Damaged blocks stop my program")
def _(done: Done) -> None:
    found = read("damaged.n5/em/s0")
    assert not found[16:32, 40:80, 50:100].any()  # block 1, 1, 1
    assert found[:16].all()


@after("Compare two versions, or a copy with its original")
def _(done: Done) -> None:
    said(done, "s2: values: 1 of 7680 differ", "[3, 5, 7]" if EM[2][7, 5, 3] == 0 else "[7, 5, 3]")


@after("A job array of SLURM without dask")
def _(done: Done) -> None:
    for task in "12":
        slurm = os.environ | {"SLURM_ARRAY_TASK_ID": task}
        subprocess.run([sys.executable, "job.py"], env=slurm, check=True)
    same(read("out.n5/em/s0"), EM[0] // 2)


@after("Limit memory and cores of a command")
def _(done: Done) -> None:
    found = zarr.open_array("limited.zarr/em/s0", mode="r")
    assert found.chunks == (32, 32, 32)
    same(found, EM[0])
