"""``backend=`` is taken by every function and command that takes options for a URL."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

import n5zarr
from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError
from n5zarr.metadata.inspect import describe
from n5zarr.xarray.backend import GroupOptions, N5BackendEntrypoint
from tests.remote.conftest import ODD, VALUES, obstore_options, upload


def functions() -> list[Any]:
    found = [getattr(n5zarr, name) for name in n5zarr.__all__]
    return [each for each in found if inspect.isroutine(each)]


def test_every_function_that_takes_options_takes_the_library() -> None:
    with_options = [f for f in functions() if "storage_options" in inspect.signature(f).parameters]
    assert len(with_options) > 25
    for function in with_options:
        parameter = inspect.signature(function).parameters.get("backend")
        assert parameter is not None, function
        assert (parameter.kind, parameter.default) == (parameter.KEYWORD_ONLY, None), function
        documented = inspect.getdoc(function) or ""
        is_elsewhere = "as for" in documented.casefold() or "Takes the parameters of" in documented
        assert "backend" in documented or is_elsewhere, function
    for method in (N5BackendEntrypoint.open_dataset, N5BackendEntrypoint.open_groups_as_dict):
        assert "backend" in inspect.signature(method).parameters
    assert "backend" in GroupOptions.__annotations__


def commands(group: Any) -> Iterator[Any]:
    for command in (group.get_command(None, name) for name in group.commands):
        yield from commands(command) if hasattr(command, "commands") else [command]


def test_every_command_that_takes_options_takes_the_library() -> None:
    found = 0
    for command in commands(typer.main.get_command(app)):
        options = {name for param in command.params for name in param.opts}
        found += "--storage-option" in options
        assert ("--backend" in options) == ("--storage-option" in options), command.name
    assert found > 10


@pytest.fixture(scope="module")
def opened(s3_server: str, local: Path) -> tuple[str, dict[str, Any]]:
    """Return the URL of a container of this module, and the options to read it with obstore."""
    upload(s3_server, "own", local)
    options = {"storage_options": obstore_options(s3_server), "backend": "obstore"}
    return f"s3://own/{local.name}", options


@pytest.mark.long
def test_tools_read_with_obstore(
    opened: tuple[str, dict[str, Any]], local: Path, tmp_path: Path
) -> None:
    url, options = opened
    em, s1 = f"{url}/em", f"{url}/em/s1"
    expected: Any = n5zarr.open_array(local, path="em/s1")[...]
    np.testing.assert_array_equal(n5zarr.open_array(s1, **options)[...], expected)
    group: Any = n5zarr.open_group(em, **options)
    np.testing.assert_array_equal(group["s1"][...], expected)
    for found in (
        xr.open_dataset(s1, engine="n5", **options),
        xr.open_datatree(em, engine="n5", **options)["s1"].to_dataset(),
        n5zarr.open_level(em, level=1, **options),
    ):
        np.testing.assert_array_equal(found["s1"], expected)
        assert found["x"].attrs["units"] == "nm"
    assert n5zarr.geometry(em, **options).scale == (20.0, 8.0, 8.0)
    assert [level.path for level in n5zarr.pyramid_levels(em, **options)][-1] == "em/s2"
    assert describe(s1, **options)["n_blocks_stored"] == 8
    assert n5zarr.get_attribute(s1, "", "resolution", **options) == [16.0, 16.0, 40.0]
    assert n5zarr.block_statistics(s1, **options).n_stored == 8
    assert n5zarr.validate(em, **options).n_datasets == 3
    assert [*n5zarr.find_problems(s1, **options)] == []
    assert n5zarr.compare(em, local / "em", **options).is_equal
    assert n5zarr.thumbnail(em, size=64, **options).size[0] == 64
    assert len(n5zarr.napari_layers(em, **options)[0][0]) == 3
    assert n5zarr.remove_empty_blocks(s1, dry_run=True, **options).n_blocks == 8
    n5zarr.download(s1, tmp_path / "down.n5", **options)
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "down.n5/em/s1")[...], expected)
    n5zarr.convert(s1, tmp_path / "out.n5" / "s1", **options)
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "out.n5/s1")[...], expected)
    with n5zarr.serve(em, **options) as server:
        assert xr.open_dataset(f"{server.url}n5/s1", engine="n5").sizes == {
            "z": 20, "y": 48, "x": 64,
        }  # fmt: skip


def test_tools_write_with_obstore(opened: tuple[str, dict[str, Any]], local: Path) -> None:
    url, options = opened
    array: Any = n5zarr.create_array(f"{url}/new", shape=(5, 7), dtype="u2", **options)
    array[...] = VALUES
    np.testing.assert_array_equal(n5zarr.open_array(f"{url}/new", **options)[...], VALUES)
    n5zarr.set_attribute(f"{url}/new", "", "note", "a", **options)
    assert n5zarr.get_attribute(f"{url}/new", "", "note", **options) == "a"
    n5zarr.remove_attribute(f"{url}/new", "", "note", **options)
    n5zarr.set_geometry(f"{url}/new", names=["y", "x"], scale=[2, 3], **options)
    assert n5zarr.geometry(f"{url}/new", **options).scale == (2.0, 3.0)
    data = xr.open_dataset(local, engine="n5", group="em/s2")
    n5zarr.to_n5(data.rename(s2="s0"), f"{url}/written/s0", **options)
    assert n5zarr.build_pyramid(f"{url}/written", levels=1, **options).levels[0].path
    to: Any = {f"destination_{k.removeprefix('storage_')}": v for k, v in options.items()}
    n5zarr.convert(local / ODD, f"{url}/copied", **to)
    np.testing.assert_array_equal(n5zarr.open_array(f"{url}/copied", **options)[...], VALUES)
    n5zarr.convert(local / ODD, f"{url.replace('.n5', '.zarr')}", **to)
    assert n5zarr.compare(f"{url}/copied", local / ODD, **options).is_equal


def test_a_container_without_a_name_of_n5(s3_server: str, tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "lab" / "a", shape=(9, 7), dtype="u2")
    upload(s3_server, "nameless", tmp_path / "lab")
    options: Any = {"storage_options": obstore_options(s3_server), "backend": "obstore"}
    assert n5zarr.open_array("s3://nameless/lab/a", **options).shape == (9, 7)


@pytest.mark.parametrize("name", ["endpoint", "endpoint_url", "AWS_ENDPOINT_URL", "config"])
def test_an_address_without_tls_needs_no_other_option(
    s3_server: str, tmp_path: Path, name: str
) -> None:
    n5zarr.create_array(tmp_path / "c.n5" / "a", shape=(9, 7), dtype="u2")
    bucket = f"plain-{name.lower().replace('_', '-')}"
    upload(s3_server, bucket, tmp_path / "c.n5")
    given = obstore_options(s3_server)
    address = given.pop("endpoint")
    del given["client_options"]["allow_http"]
    given[name] = {"endpoint": address} if name == "config" else address
    options: Any = {"storage_options": given, "backend": "obstore"}
    assert n5zarr.open_array(f"s3://{bucket}/c.n5/a", **options).shape == (9, 7)
    given["client_options"]["allow_http"] = False
    with pytest.raises(ConnectionError, match="HTTP error: builder error"):
        n5zarr.open_array(f"s3://{bucket}/c.n5/a", **options)


def test_an_xml_is_read_with_the_library(
    opened: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    url, options = opened
    with pytest.raises(FileNotFoundError, match=r"BigDataViewer's XML, but the file does not"):
        n5zarr.open_bdv(f"{url.rpartition('/')[0]}/none.xml", **options)


def test_commands_take_the_library(opened: tuple[str, dict[str, Any]]) -> None:
    url, options = opened
    given = options["storage_options"]
    flags = [f"-o{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in given.items()]
    run = CliRunner().invoke(
        app, ["info", f"{url}/em/s1", "--json", "--backend", "obstore", *flags]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["n_blocks_stored"] == 8
    wrong = CliRunner().invoke(app, ["info", url, "--backend", "boto"])
    assert wrong.exit_code == 2
    assert "boto" in wrong.output


CALLS: dict[str, Callable[..., object]] = {
    "open": lambda where, **options: n5zarr.open(where, path="a", **options),
    "engine": lambda where, **options: xr.open_dataset(where, engine="n5", group="a", **options),
    "geometry": lambda where, **options: n5zarr.geometry(where, "a", **options),
    "validate": n5zarr.validate,
    "convert": lambda where, **options: n5zarr.convert(where, f"{where}.zarr", **options),
    "compare": lambda where, **options: n5zarr.compare(where, where, **options),
    "open_bdv": lambda where, **options: n5zarr.open_bdv(where, xml=f"{where}.xml", **options),
    "restore_blocks": lambda where, **options: n5zarr.restore_blocks(where, where, **options),
}
WRONG: list[tuple[str, Any]] = [(name, "boto") for name in CALLS]
WRONG += [(name, other) for name in ("compare", "open_bdv", "restore_blocks") for other in ("", 5)]


@pytest.mark.parametrize(("name", "backend"), WRONG)
def test_an_unknown_library_is_refused(tmp_path: Path, name: str, backend: Any) -> None:
    n5zarr.create_array(tmp_path / "a.n5" / "a", shape=(3,), dtype="u1")
    with pytest.raises(N5UnrepresentableError, match="backend: expected one of 'fsspec', ") as err:
        CALLS[name](tmp_path / "a.n5", backend=backend)
    assert err.value.kind == "option"


@pytest.mark.parametrize("name", ["open", "engine", "geometry", "validate", "convert"])
def test_a_library_is_only_for_a_url(tmp_path: Path, name: str) -> None:
    n5zarr.create_array(tmp_path / "a.n5" / "a", shape=(3,), dtype="u1")
    for where in (tmp_path / "a.n5", N5Store(tmp_path / "a.n5")):
        with pytest.raises(N5UnrepresentableError, match="backend: expected only with a URL, got"):
            CALLS[name](where, backend="obstore")


def test_an_unknown_library_of_a_destination_is_refused(tmp_path: Path) -> None:
    wrong: Any = "boto"
    with pytest.raises(N5UnrepresentableError, match=r"backend: expected one of .*, got 'boto'"):
        n5zarr.convert(n5zarr.sample_path(), tmp_path / "b.zarr", destination_backend=wrong)
