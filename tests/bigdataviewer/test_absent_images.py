"""Images that the XML of a project names and that do not exist are named, also by ``info``."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path

import h5py
import pytest

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5Warning
from n5zarr.metadata.inspect import describe
from tests.bigdataviewer.split_project import FORMATS, write_project
from tests.command import CliRunner

CONTAINERS = {"n5": "d.n5", "ome": "d.ome.zarr", "hdf5": "d.h5"}


def project(folder: Path, kind: str, *, is_split: bool) -> Path:
    """Write a project; one that is not split has the images of the setups 0 and 3."""
    xml = write_project(folder, kind)
    if not is_split:
        text = xml.read_text()
        inner = re.search("<ImageLoader format='[^s].*?</ImageLoader>", text)
        assert inner is not None
        text = re.sub("<ImageLoader.*</SetupIds></ImageLoader>", inner[0], text)
        text = re.sub("(<ViewSetup><id>|setup='|<tile>|<Tile><id>)2", r"\g<1>3", text)
        text = re.sub("<ViewSetup><id>[16]<.*?</ViewSetup>", "", text)
        places = "<ViewRegistration timepoint='.' setup='[16]'.*?</ViewRegistration>"
        text = re.sub(f"{places}|<MissingView timepoint='.' setup='[16]'/>", "", text)
        sizes = {"13 17 11": "29 17 11", "13 9 6": "19 13 7"}
        xml.write_text(re.sub("13 17 11|13 9 6", lambda m: sizes[m[0]], text))
    return xml


def remove(folder: Path, kind: str, *view: int) -> None:
    """Remove the container, or an image in it."""
    root = folder / CONTAINERS[kind]
    if not view:
        shutil.rmtree(root) if root.is_dir() else root.unlink()
    elif kind == "hdf5":
        with h5py.File(root, "r+") as file:
            del file[f"t{view[1]:05}/s{view[0]:02}"]
    else:
        names = {"n5": "setup{}/timepoint{}", "ome": "s{}-t{}.zarr"}
        shutil.rmtree(root / names[kind].format(*view))


@pytest.mark.each_of(5)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("is_split", [False, True])
def test_an_image_is_named(kind: str, is_split: bool, tmp_path: Path) -> None:
    folders = tmp_path / "whole", tmp_path / "part"
    for folder in folders:
        folder.mkdir()
    whole, xml = (project(folder, kind, is_split=is_split) for folder in folders)
    with warnings.catch_warnings():
        warnings.simplefilter("error", N5Warning)
        n5zarr.open_bdv(whole)
        describe(whole)
    remove(xml.parent, kind, 0, 0)
    names = "setup 0 at 0, setup 1 at 0" if is_split else "setup 0 at 0"
    with pytest.warns(N5Warning, match=f"without data: {names}$"):
        n5zarr.open_bdv(xml)
    result = CliRunner().invoke(app, ["info", str(xml)])
    assert (result.exit_code, f"views without images: {names}\n" in result.output) == (0, True)
    with pytest.warns(N5Warning, match=f"views without images: {names}$"):
        describe(xml)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("is_split", [False, True])
def test_a_container_is_named(kind: str, is_split: bool, tmp_path: Path) -> None:
    xml = project(tmp_path, kind, is_split=is_split)
    remove(tmp_path, kind)
    with pytest.raises(FileNotFoundError, match=re.escape(CONTAINERS[kind])):
        n5zarr.open_bdv(xml)
    result = CliRunner().invoke(app, ["info", str(xml)])
    assert (result.exit_code, CONTAINERS[kind] in result.output) == (2, True)
