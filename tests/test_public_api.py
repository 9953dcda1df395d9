"""The public names and their parameters, literally: a change of them is a visible change here."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import numcodecs
import pytest
import xarray as xr
import zarr.abc.store
import zarr.registry

import n5zarr
import n5zarr.format

NAMES = {
    "n5zarr": {
        "ArrayGeometry",
        "Block",
        "CacheOptions",
        "InterestPoints",
        "N5Block",
        "N5BlockCodec",
        "N5Error",
        "N5FSStore",
        "N5Store",
        "N5Warning",
        "ArrayDifference",
        "Comparison",
        "Conversion",
        "Difference",
        "Downloaded",
        "N5Parser",
        "RemovedBlocks",
        "Sidecars",
        "Virtualized",
        "build_pyramid",
        "compare",
        "compare_arrays",
        "convert",
        "download",
        "get_attribute",
        "rechunk",
        "remove_attribute",
        "remove_empty_blocks",
        "set_attribute",
        "sidecar",
        "virtualize",
        "BlockStatistics",
        "Finding",
        "Validation",
        "block_statistics",
        "clean_leftovers",
        "find_problems",
        "quarantine_blocks",
        "repair_edges",
        "restore_blocks",
        "validate",
        "Server",
        "serve",
        "plot",
        "thumbnail",
        "napari_layers",
        "NeuroglancerView",
        "view",
        "create_array",
        "decode_block",
        "encode_block",
        "geometry",
        "open_array",
        "open_group",
        "open",
        "open_bdv",
        "open_level",
        "pyramid_levels",
        "read_block",
        "read_interest_points",
        "sample_path",
        "set_geometry",
        "to_n5",
        "write_block",
        "write_interest_points",
    },
    "n5zarr.xarray": set[str](),
    "n5zarr.hdmf": {
        "N5IO",
        "NWBN5IO",
        "convert",
        "differences",
    },
    "n5zarr.format": {
        "ATTRIBUTES_JSON",
        "AxisOrder",
        "BlockHeader",
        "BlockMode",
        "Compression",
        "DataType",
        "DatasetAttributes",
        "GroupAttributes",
        "JSON",
        "block_extent",
        "block_path",
        "check_version",
        "compression_to_json",
        "grid_shape",
        "is_dataset",
        "normalize_path",
        "parse_attributes",
        "parse_compression",
        "parse_json",
        "parse_version",
        "to_c",
        "to_n5",
    },
    "n5zarr.errors": {
        "KINDS",
        "Kind",
        "N5AttributesError",
        "N5BlockError",
        "N5Error",
        "N5FormatError",
        "N5MissingDependencyError",
        "N5UnrepresentableError",
        "N5UnsupportedError",
        "N5Warning",
        "Problem",
    },
}

# Parameters with their defaults; after "*" by name only. Not of enumerations, aliases and warnings.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "n5zarr.Block": ("header", "data"),
    "n5zarr.CacheOptions": ("*", "bytes=268435456", "recheck='open'"),
    "n5zarr.N5Block": ("dtype", "block_shape", "compression=None"),
    "n5zarr.N5BlockCodec": ("compression=<factory>", "axis_order='C'"),
    "n5zarr.N5Error": ("message", "*", "kind", "where=''"),
    "n5zarr.N5Store": (
        "store",
        "*",
        "read_only=False",
        "codecs='zarr'",
        "zarr_format=None",
        "axis_order='C'",
        "coords=False",
        "chunk_grid='regular'",
        "storage_options=None",
        "backend='fsspec'",
        "cache=None",
        "forbidden_is_missing=False",
        "concurrency=None",
        "durability='atomic'",
        "shards_of_java=None",
        "mode=None",
        "fs=None",
        "**options",
    ),
    "n5zarr.N5FSStore": (
        "url",
        "normalize_keys=False",
        "*",
        "mode='w'",
        "dimension_separator=None",
        "fs=None",
        "check=False",
        "create=False",
        "auto_mkdir=True",
        "**options",
    ),
    "n5zarr.create_array": (
        "store",
        "*",
        "path=''",
        "shape=None",
        "dtype=None",
        "data=None",
        "chunks='auto'",
        "chunk_aspect_ratio=None",
        "chunk_elements=None",
        "compression='gzip'",
        "fill_value=None",
        "axes=None",
        "units=None",
        "resolution=None",
        "offset=None",
        "attributes=None",
        "axis_order='C'",
        "overwrite=False",
        "storage_options=None",
        "backend='fsspec'",
        "durability=None",
    ),
    "n5zarr.decode_block": ("data", "*", "data_type", "compression", "axis_order='C'"),
    "n5zarr.encode_block": ("array", "*", "compression", "data_type=None", "axis_order='C'"),
    "n5zarr.errors.N5AttributesError": ("problems", "*", "where=''"),
    "n5zarr.errors.N5BlockError": ("message", "*", "kind", "where=''"),
    "n5zarr.errors.N5Error": ("message", "*", "kind", "where=''"),
    "n5zarr.errors.N5FormatError": ("message", "*", "kind", "where=''"),
    "n5zarr.errors.N5MissingDependencyError": ("package", "purpose", "extra"),
    "n5zarr.errors.N5UnrepresentableError": ("message", "*", "kind", "where=''"),
    "n5zarr.errors.N5UnsupportedError": ("message", "*", "kind", "where=''"),
    "n5zarr.errors.Problem": ("loc", "message", "kind='member'"),
    "n5zarr.format.BlockHeader": ("*", "mode", "block_shape=()", "n_elements=None"),
    "n5zarr.format.DatasetAttributes": (
        "*",
        "dimensions",
        "block_size",
        "data_type",
        "compression",
        "attributes",
        "record=None",
        "has_block_size=True",
        "numpy_type=None",
    ),
    "n5zarr.format.GroupAttributes": ("*", "attributes", "record=None"),
    "n5zarr.format.block_extent": ("dimensions", "block_size", "grid_position"),
    "n5zarr.format.block_path": ("grid_position",),
    "n5zarr.format.check_version": ("value",),
    "n5zarr.format.compression_to_json": ("compression",),
    "n5zarr.format.grid_shape": ("dimensions", "block_size"),
    "n5zarr.format.is_dataset": ("document",),
    "n5zarr.format.normalize_path": ("path",),
    "n5zarr.format.parse_attributes": ("document", "*", "is_root=True"),
    "n5zarr.format.parse_compression": ("value", "loc=('compression',)"),
    "n5zarr.format.parse_json": ("data",),
    "n5zarr.format.parse_version": ("value",),
    "n5zarr.format.to_c": ("values_n5",),
    "n5zarr.format.to_n5": ("values_c",),
    "n5zarr.hdmf.N5IO": ("*args", "**kwargs"),
    "n5zarr.hdmf.NWBN5IO": ("*args", "**kwargs"),
    "n5zarr.hdmf.convert": (
        "source",
        "target",
        "*",
        "to=None",
        "overwrite=False",
        "verify=True",
        "progress=None",
    ),
    "n5zarr.hdmf.differences": ("first", "second", "*", "report=None"),
    "n5zarr.open": (
        "store",
        "mode='r'",
        "*",
        "path=''",
        "axis_order='C'",
        "storage_options=None",
        "backend='fsspec'",
        "durability=None",
        "dtype=None",
        "ndim=None",
        "shape=None",
        "chunks=None",
        "compression=None",
        "assume_metadata=None",
        "delete_existing=False",
        "fill_missing=True",
    ),
    "n5zarr.open_array": ("store", "mode='r'", "*", "path=''", "**options"),
    "n5zarr.open_group": (
        "store",
        "mode='r'",
        "*",
        "path=''",
        "axis_order='C'",
        "storage_options=None",
        "backend='fsspec'",
        "durability=None",
    ),
    "n5zarr.ArrayGeometry": (
        "*",
        "path",
        "shape",
        "names",
        "units",
        "scale",
        "translation",
        "convention",
        "levels=()",
    ),
    "n5zarr.geometry": (
        "node",
        "path=''",
        "*",
        "axis_order='C'",
        "convention=None",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.set_geometry": (
        "node",
        "path=''",
        "*",
        "names=None",
        "units=None",
        "scale=None",
        "translation=None",
        "convention='auto'",
        "axis_order='C'",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.open_bdv": (
        "store",
        "*",
        "path=''",
        "xml=None",
        "registrations=True",
        "axis_order='C'",
        "chunks='auto'",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.read_interest_points": (
        "location",
        "*",
        "label=None",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.write_interest_points": (
        "location",
        "points",
        "correspondences=None",
        "lists=None",
        "*",
        "overwrite=False",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.open_level": (
        "store",
        "resolution=None",
        "*",
        "path=''",
        "level=None",
        "axis_order='C'",
        "convention=None",
        "storage_options=None",
        "backend='fsspec'",
        "**options",
    ),
    "n5zarr.pyramid_levels": (
        "store",
        "path=''",
        "*",
        "axis_order='C'",
        "convention=None",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.ArrayDifference": ("*", "n_elements", "n_differing", "elements", "largest"),
    "n5zarr.Comparison": ("*", "n_groups", "n_arrays", "n_elements", "differences", "problems"),
    "n5zarr.Conversion": (
        "source",
        "destination",
        "arrays",
        "n_groups",
        "seconds",
        "verified=False",
        "dry_run=False",
    ),
    "n5zarr.Difference": (
        "*",
        "path",
        "what",
        "key=''",
        "first=None",
        "second=None",
        "values=None",
    ),
    "n5zarr.Downloaded": (
        "*",
        "container",
        "datasets",
        "n_blocks",
        "n_bytes",
        "n_loaded",
        "n_bytes_loaded",
    ),
    "n5zarr.N5Parser": (
        "group=''",
        "coords=True",
        "max_inlined=67108864",
        "scheduler=None",
        "n_workers=None",
    ),
    "n5zarr.RemovedBlocks": (
        "*",
        "n_datasets",
        "n_blocks",
        "n_removed",
        "n_bytes",
        "n_directories",
        "problems",
    ),
    "n5zarr.Sidecars": ("container", "n_written", "n_unchanged", "n_removed", "left_out"),
    "n5zarr.Virtualized": (
        "container",
        "prefix",
        "path",
        "format",
        "n_groups",
        "n_arrays",
        "n_coordinates",
        "n_referenced",
        "n_bytes_referenced",
        "n_inlined",
        "n_bytes_inlined",
        "n_missing",
    ),
    "n5zarr.build_pyramid": (
        "store",
        "path=''",
        "*",
        "factors='auto'",
        "levels='auto'",
        "method='auto'",
        "convention='auto'",
        "compression=None",
        "chunks=None",
        "overwrite=False",
        "resume=False",
        "dry_run=False",
        "memory=268435456",
        "storage_options=None",
        "backend='fsspec'",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.compare": (
        "first",
        "second",
        "*",
        "attributes=True",
        "values=True",
        "tolerance=0",
        "storage_options=None",
        "backend='fsspec'",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.compare_arrays": (
        "first",
        "second",
        "*",
        "tolerance=0",
        "max_box_bytes=8388608",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.convert": (
        "source",
        "destination",
        "*",
        "to=None",
        "select=()",
        "exclude=()",
        "level=None",
        "ome=False",
        "labels=()",
        "coords=False",
        "chunks=None",
        "shards=None",
        "compression=None",
        "shards_of_java=None",
        "overwrite=False",
        "resume=False",
        "verify=False",
        "dry_run=False",
        "storage_options=None",
        "backend='fsspec'",
        "destination_options=None",
        "destination_backend='fsspec'",
        "max_memory=1073741824",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.download": (
        "store",
        "directory",
        "*",
        "paths=()",
        "select=None",
        "box=None",
        "dry_run=False",
        "overwrite=False",
        "storage_options=None",
        "backend='fsspec'",
        "progress=None",
    ),
    "n5zarr.get_attribute": (
        "store",
        "path=''",
        "key=''",
        "*",
        "default=None",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.rechunk": (
        "store",
        "path=''",
        "*",
        "chunks=None",
        "compression=None",
        "resume=False",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.remove_attribute": (
        "store",
        "path",
        "key",
        "*",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.remove_empty_blocks": (
        "store",
        "path=''",
        "*",
        "dry_run=False",
        "storage_options=None",
        "backend='fsspec'",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.set_attribute": (
        "store",
        "path",
        "key",
        "value",
        "*",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.sidecar": (
        "store",
        "path=''",
        "*",
        "remove=False",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.virtualize": (
        "store",
        "out",
        "path=''",
        "*",
        "format=None",
        "url=None",
        "coords=True",
        "zarr_format=None",
        "chunk_grid='regular'",
        "max_inlined=67108864",
        "message=None",
        "overwrite=False",
        "storage_options=None",
        "backend='fsspec'",
        "out_options=None",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.BlockStatistics": (
        "*",
        "path",
        "n_blocks",
        "n_stored",
        "n_read",
        "n_zero",
        "n_elements",
        "n_nan",
        "n_infinite",
        "minimum",
        "maximum",
        "mean",
        "bin_edges",
        "histogram",
        "n_bytes",
        "n_bytes_stored",
    ),
    "n5zarr.Finding": (
        "*",
        "severity",
        "kind",
        "path",
        "message",
        "block=None",
        "file=None",
        "repair=None",
    ),
    "n5zarr.Validation": (
        "*",
        "container",
        "path",
        "findings",
        "n_groups",
        "n_datasets",
        "n_blocks",
        "n_bytes",
        "seconds",
        "deep",
    ),
    "n5zarr.block_statistics": (
        "store",
        "path=''",
        "*",
        "n_blocks=64",
        "seed=0",
        "storage_options=None",
        "backend='fsspec'",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.clean_leftovers": (
        "store",
        "findings",
        "*",
        "min_age=3600.0",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.find_problems": (
        "store",
        "path=''",
        "*",
        "deep=False",
        "storage_options=None",
        "backend='fsspec'",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.quarantine_blocks": (
        "store",
        "findings",
        "*",
        "to=None",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.repair_edges": (
        "store",
        "path=''",
        "*",
        "to",
        "storage_options=None",
        "backend='fsspec'",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.restore_blocks": ("place", "store", "*", "storage_options=None", "backend='fsspec'"),
    "n5zarr.validate": (
        "store",
        "path=''",
        "*",
        "deep=False",
        "state=None",
        "storage_options=None",
        "backend='fsspec'",
        "scheduler=None",
        "n_workers=None",
        "progress=None",
    ),
    "n5zarr.Server": ("app", "host='127.0.0.1'", "port=0"),
    "n5zarr.serve": (
        "location",
        "*",
        "host='127.0.0.1'",
        "port=0",
        "allow_hosts=()",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.plot": (
        "location",
        "*",
        "level=None",
        "position=None",
        "channel=None",
        "labels=()",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.thumbnail": (
        "location",
        "*",
        "size=512",
        "level=None",
        "position=None",
        "channel=None",
        "labels=()",
        "all_images=False",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.napari_layers": (
        "location",
        "*",
        "labels=()",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.NeuroglancerView": ("server", "url", "height"),
    "n5zarr.view": (
        "location",
        "*",
        "dataset=()",
        "labels=()",
        "host='127.0.0.1'",
        "port=0",
        "allow_hosts=()",
        "height=600",
        "storage_options=None",
        "backend='fsspec'",
    ),
    "n5zarr.read_block": ("store", "path", "grid_position"),
    "n5zarr.sample_path": (),
    "n5zarr.write_block": ("store", "path", "grid_position", "data", "*", "block_shape=None"),
    "n5zarr.to_n5": (
        "data",
        "store",
        "*",
        "group=''",
        "convention='auto'",
        "compression=mappingproxy({'type': 'gzip'})",
        "chunks=None",
        "compute=True",
        "mode=None",
        "region=None",
        "append_dim=None",
        "storage_options=None",
        "backend='fsspec'",
        "durability=None",
    ),
}

# Public methods of N5Store, without those that it has from zarr's Store as they are.
STORE_METHODS: dict[str, tuple[str, ...]] = {
    "as_mapping": ("self",),
    "clear": ("self",),
    "close": ("self",),
    "delete": ("self", "key"),
    "delete_dir": ("self", "prefix"),
    "delete_sync": ("self", "key"),
    "exists": ("self", "key"),
    "get": ("self", "key", "prototype=None", "byte_range=None"),
    "get_partial_values": ("self", "prototype", "key_ranges"),
    "get_sync": ("self", "key", "*", "prototype=None", "byte_range=None"),
    "getsize_prefix": ("self", "prefix"),
    "is_empty": ("self", "prefix"),
    "list": ("self",),
    "list_dir": ("self", "prefix"),
    "list_prefix": ("self", "prefix"),
    "set": ("self", "key", "value"),
    "set_if_not_exists": ("self", "key", "value"),
    "set_sync": ("self", "key", "value"),
    "with_read_only": ("self", "read_only=False"),
}
STORE_PROPERTIES = {
    "axis_order",
    "chunk_grid",
    "codecs",
    "concurrency",
    "coords",
    "durability",
    "info",
    "root",
    "store",
    "supports_consolidated_metadata",
    "supports_deletes",
    "supports_listing",
    "supports_writes",
    "zarr_format",
}

# Helpers of the package itself: public to its modules, and no part of what users may rely on.
STORE_INTERNALS = {
    "ask", "assuming", "container", "dataset_of", "locate", "node", "reopened", "run", "run_sync",
    "showing", "storage",
}  # fmt: skip

ACCESSOR_METHODS: dict[str, tuple[str, ...]] = {
    "crop": ("self", "**between"),
    "level": ("self", "k"),
}
ACCESSOR_PROPERTIES = {"convention", "voxel_size"}

MODULES = list(NAMES)


def parameters(function: Any) -> tuple[str, ...]:
    """Give the parameters of a function, as in its definition but without types."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    kinds = {p.kind for p in bare}
    names = [str(p) for p in bare]
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        names.insert(sum(p.kind is p.POSITIONAL_ONLY for p in bare), "/")
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        first = next(k for k, p in enumerate(bare) if p.kind is p.KEYWORD_ONLY)
        names.insert(first + ("/" in names), "*")
    assert text == f"({', '.join(names)})"
    return tuple(names)


def public(cls: type) -> dict[str, Any]:
    """Give the public members of a class that are not zarr's own, as they are defined."""
    inherited = {name for name in dir(zarr.abc.store.Store) if name not in STORE_METHODS}
    return {
        name: inspect.getattr_static(cls, name)
        for name in dir(cls)
        if not name.startswith("_")
        and name not in STORE_INTERNALS
        and not (
            name in inherited
            and inspect.getattr_static(cls, name)
            is inspect.getattr_static(zarr.abc.store.Store, name)
        )
    }


@pytest.mark.parametrize("module", MODULES)
def test_the_public_names_are_these(module: str) -> None:
    loaded = importlib.import_module(module)
    names = set(getattr(loaded, "__all__", ()))
    assert names == NAMES[module]
    assert names <= set(dir(loaded))


def test_the_public_functions_have_these_parameters() -> None:
    now = {
        name: parameters(
            getattr(importlib.import_module(name.rpartition(".")[0]), name.split(".")[-1])
        )
        for name in PARAMETERS
    }
    assert now == PARAMETERS


def test_every_public_function_and_class_is_listed_with_its_parameters() -> None:
    for module in MODULES:
        for name in NAMES[module]:
            value = getattr(importlib.import_module(module), name)
            if inspect.isfunction(value):
                assert f"{module}.{name}" in PARAMETERS


def test_the_store_has_these_methods() -> None:
    members = public(n5zarr.N5Store)
    methods = {name for name, value in members.items() if not isinstance(value, property)}
    assert methods == STORE_METHODS.keys()
    assert members.keys() - methods == STORE_PROPERTIES
    assert {name: parameters(getattr(n5zarr.N5Store, name)) for name in methods} == STORE_METHODS


def test_the_accessor_has_these_methods() -> None:
    accessor = type(xr.Dataset().n5)
    members = public(accessor)
    methods = {name for name, value in members.items() if not isinstance(value, property)}
    assert {name: parameters(getattr(accessor, name)) for name in methods} == ACCESSOR_METHODS
    assert members.keys() - methods == ACCESSOR_PROPERTIES


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
    """As BioIO and napari ask for."""
    assert "n5zarr" in entry_points(group="bioio.readers").names
    assert "n5zarr" in entry_points(group="napari.manifest").names


def test_importing_n5zarr_loads_no_optional_package() -> None:
    code = (
        "import sys, n5zarr; "
        "print([m for m in ('xarray', 'dask', 'typer', 'rich', 'PIL', 'matplotlib', 'bioio', "
        "'bioio_base', 'napari', 'npe2', 'pint') "
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
