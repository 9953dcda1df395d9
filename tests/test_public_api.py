"""The public names and their parameters are those of ``public_api.txt``."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

import numcodecs
import pytest
import zarr.registry

import n5zarr
from tests.outputs import python
from tests.public_api import MODULES, SNAPSHOT, listed, names_of


def test_the_public_names_have_these_parameters() -> None:
    """The snapshot is up to date; ``uv run python -m tests.public_api`` writes it."""
    assert listed() == SNAPSHOT.read_text().splitlines()


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_offered_by_completion(module: str) -> None:
    loaded = importlib.import_module(module)
    assert set(names_of(module)) <= set(dir(loaded))


def test_public_names_have_docstrings() -> None:
    for name in n5zarr.__all__:
        assert len(getattr(n5zarr, name).__doc__ or "") > 40, name


def test_the_codecs_are_found_without_importing_n5zarr_first() -> None:
    assert zarr.registry.get_codec_class("n5zarr.block") is n5zarr.N5BlockCodec
    config = {"id": "n5zarr_block", "dtype": ">u2", "block_shape": [2, 3]}
    assert isinstance(numcodecs.get_codec(config), n5zarr.N5Block)  # type: ignore[no-untyped-call]
    assert "n5zarr.block" in entry_points(group="zarr.codecs").names
    assert "n5zarr_block" in entry_points(group="numcodecs.codecs").names


def test_the_readers_are_found_under_the_name_of_the_distribution() -> None:
    """BioIO and napari find the readers under the name of the distribution."""
    assert "n5zarr" in entry_points(group="bioio.readers").names
    assert "n5zarr" in entry_points(group="napari.manifest").names


def test_importing_n5zarr_loads_no_optional_package() -> None:
    code = (
        "import sys, n5zarr; "
        "print([m for m in ('xarray', 'dask', 'typer', 'rich', 'PIL', 'matplotlib', 'bioio', "
        "'bioio_base', 'napari', 'npe2', 'pint') "
        "if m in sys.modules])"
    )
    assert python("-c", code) == "[]\n"


def test_functions_that_need_xarray_name_the_extra() -> None:
    code = (
        "import sys; sys.modules['xarray'] = None\n"
        "import n5zarr\n"
        "try:\n    n5zarr.to_n5\n"
        "except ImportError as err:\n    print(err)"
    )
    assert "pip install 'n5zarr[xarray]'" in python("-c", code)
