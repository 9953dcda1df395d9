"""A BigStitcher project to compare with others."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import n5zarr
from tests.command import printed
from tests.contract import bigstitcher

if TYPE_CHECKING:
    from pathlib import Path


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
