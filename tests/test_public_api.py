"""The public names; growing them is a visible change."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import numcodecs
import zarr.registry

import n5zarr
import n5zarr.format


def test_the_public_names_are_these() -> None:
    assert set(n5zarr.__all__) == {
        "Block",
        "CacheOptions",
        "N5Block",
        "N5BlockCodec",
        "N5Error",
        "N5Store",
        "N5Warning",
        "create_array",
        "decode_block",
        "encode_block",
        "open",
        "open_bdv",
        "open_level",
        "pyramid_levels",
        "read_block",
        "sample_path",
        "to_n5",
    }
    assert set(n5zarr.__all__) <= set(dir(n5zarr))
    for name in (*n5zarr.__all__, *n5zarr.format.__all__):
        assert hasattr(n5zarr, name) or name in vars(n5zarr.format)


def test_public_names_have_docstrings() -> None:
    for name in n5zarr.__all__:
        assert len(getattr(n5zarr, name).__doc__ or "") > 40, name


def test_the_codecs_are_found_without_importing_n5zarr_first() -> None:
    assert zarr.registry.get_codec_class("n5zarr.block") is n5zarr.N5BlockCodec
    config = {"id": "n5zarr_block", "dtype": ">u2", "block_shape": [2, 3]}
    assert isinstance(numcodecs.get_codec(config), n5zarr.N5Block)  # type: ignore[no-untyped-call]
    assert "n5zarr.block" in entry_points(group="zarr.codecs").names
    assert "n5zarr_block" in entry_points(group="numcodecs.codecs").names


def test_importing_n5zarr_loads_no_optional_package() -> None:
    code = (
        "import sys, n5zarr; "
        "print([m for m in ('xarray', 'dask', 'typer', 'rich', 'PIL', 'matplotlib') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_needs_xarray_says_so() -> None:
    code = (
        "import sys; sys.modules['xarray'] = None\n"
        "import n5zarr\n"
        "try:\n    n5zarr.to_n5\n"
        "except ImportError as err:\n    print(err)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'n5zarr[xarray]'" in done.stdout
