"""A BigStitcher project to compare with others."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.images.find import find_images
from n5zarr.storage.place import place_of
from n5zarr.viewing.serve.location import ServedLocation
from tests.command import printed
from tests.contract import bigstitcher


@pytest.fixture(scope="session")
def n5_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the XML of the project."""
    return bigstitcher.write_project(tmp_path_factory.mktemp("n5"))


@pytest.fixture(scope="session")
def n5_tree(n5_project: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", n5zarr.N5Warning)  # of the turned setup
        return n5zarr.open_bdv(n5_project).load()


def check_that_commands_print_the_same(one: Path, other: Path) -> None:
    """Check ``tree``, and what ``info`` says of the project, for the XML of two projects."""
    trees = [printed("tree", xml, "--depth", "1").splitlines()[1:] for xml in (one, other)]
    assert trees[0] == trees[1]
    found = [json.loads(printed("info", xml, "--json"))["project"] for xml in (one, other)]
    assert found[0] | {"xml": ""} == found[1] | {"xml": ""}


def check_that_viewers_show_the_same(one: Path, other: Path) -> None:
    """Check images, pictures, layers and what is served, for the XML of two projects."""
    images, expected = find_images(one), find_images(other)
    for image, wanted in zip(images, expected, strict=True):
        assert (image.path, image.axes) == (wanted.path, wanted.axes)
        assert image.attributes == wanted.attributes
    picture, like = (np.asarray(n5zarr.thumbnail(x, all_images=True)) for x in (one, other))
    np.testing.assert_array_equal(picture, like)
    assert picture.std() > 0
    layers: list[Any] = [n5zarr.napari_layers(xml) for xml in (one, other)]
    for (data, options, _), (same, others, _) in zip(*layers, strict=True):
        np.testing.assert_array_equal(np.asarray(data[0]), np.asarray(same[0]))
        assert str(options["scale"]) == str(others["scale"])
    served = ServedLocation(place_of(one))
    assert served.first_dataset() == "setup0/timepoint0/s0"
    assert {each.path for each in served.images().images} == {each.path for each in expected}
