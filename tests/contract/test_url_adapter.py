"""``|n5:`` in zarr's URL pipelines, with a stand-in of what zarr is to have."""

from __future__ import annotations

import shutil
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.buffer import cpu
from zarr.storage import ManagedMemoryStore

import n5zarr
from n5zarr._zarr import sync
from n5zarr.errors import N5UnrepresentableError
from tests import url_pipelines
from tests.contract.stored import by_tensorstore, write_by_tensorstore
from tests.programs import Programs
from tests.url_pipelines import open_url

VALUES = np.arange(35, dtype="u2").reshape(5, 7)

pytestmark = pytest.mark.usefixtures("proposal")


@pytest.fixture
def proposal(monkeypatch: pytest.MonkeyPatch) -> None:
    url_pipelines.install(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a container that tensorstore wrote."""
    for path, values in (("em/s0", VALUES), ("em/s1", VALUES[::2, ::2])):
        write_by_tensorstore(tmp_path / "c 1.n5" / path, values, (2, 3))
    return tmp_path / "c 1.n5"


@pytest.mark.each_of(3)
@pytest.mark.parametrize(
    "url",
    [
        "file://{root}|n5:em/s0", "file:{root}/|n5:em/s0/", "file://{root}|N5:em/s0",
        "file://{root}/em|n5:s0", "file://{root}/em/s0|n5:", "file://{root}/em/s0|n5",
        "file://{root}|n5:em/s0|zarr3:", "file://{root}|n5:em|zarr3:s0",
        "file://{root}.zip|zip:c 1.n5|n5:em/s0", "file://{root}.zip|zip:c 1.n5/em|n5:s0",
        "file://{root}.zip|zip:|n5:c 1.n5/em/s0",
    ],
)  # fmt: skip
def test_it_opens_what_is_left_of_it(root: Path, url: str) -> None:
    shutil.make_archive(str(root), "zip", root.parent, root.name)
    where = url.format(root=str(root).replace(" ", "%20"))
    array = open_url(where, mode="r")
    np.testing.assert_array_equal(array[...], VALUES)
    assert array.read_only


def test_a_group_and_a_path(root: Path) -> None:
    group: Any = open_url(f"file://{root}|n5:", mode="r")
    assert sorted(group["em"].array_keys()) == ["s0", "s1"]
    array = open_url(f"file://{root}|n5:em", path="s1", mode="r")
    np.testing.assert_array_equal(array[...], VALUES[::2, ::2])


def test_the_same_text_opens_with_n5zarr(root: Path) -> None:
    array: Any = n5zarr.open(f"file://{root}|n5:em/s1".replace(" ", "%20"))
    np.testing.assert_array_equal(array[...], VALUES[::2, ::2])


def test_it_writes_what_tensorstore_reads(tmp_path: Path) -> None:
    group = open_url(f"file://{tmp_path}/new.n5|n5:", mode="a")
    group.create_array("em/s0", shape=VALUES.shape, chunks=(2, 3), dtype="u2")[...] = VALUES
    array = open_url(f"file://{tmp_path}/new.n5|n5:em/s0", mode="r+")
    array[1:3] = 9
    expected = VALUES.copy()
    expected[1:3] = 9
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "new.n5/em/s0"), expected)


def test_what_zarr_keeps_in_memory(root: Path) -> None:
    store = ManagedMemoryStore(name="lab")  # whoever names it gets the same
    for path in root.rglob("*"):
        if path.is_file():
            key = f"c.n5/{path.relative_to(root).as_posix()}"
            sync(store.set(key, cpu.Buffer.from_bytes(path.read_bytes())))
    array = open_url("memory:lab/c.n5|n5:em/s0", mode="r+")
    np.testing.assert_array_equal(array[...], VALUES)
    array[0, 0] = 99
    assert open_url("memory:lab|n5:c.n5/em/s0", mode="r")[0, 0] == 99


def test_what_is_wrong_is_an_error(root: Path) -> None:
    where = f"file://{root}|n5:em/s0"
    with pytest.raises(N5UnrepresentableError, match=r"expected no query behind .*n5:em/s0\?a=1"):
        open_url(f"{where}?a=1", mode="r")
    with pytest.raises(ValueError, match="root"):
        open_url(f"n5:{root}", mode="r")
    with pytest.raises(TypeError, match="storage_options"):
        open_url(where, mode="r", storage_options={"anon": True})
    with pytest.raises(FileNotFoundError):
        open_url(f"file://{root}x|n5:em/s0", mode="r")
    with pytest.raises(ValueError, match="read-only"):
        open_url(where, mode="r")[...] = 0
    assert not root.with_name("c 1.n5x").exists()


def test_it_is_an_adapter_of_zarrs() -> None:
    (found,) = entry_points(group=url_pipelines.GROUP, name="n5")
    assert issubclass(found.load(), url_pipelines.URLPipelineAdapter)


def test_it_is_loaded_by_nothing_until_zarr_asks(programs: Programs) -> None:
    """Without the proposal the module can be imported all the same."""
    code = (
        "zarr.open(n5zarr.N5Store(n5zarr.sample_path()), mode='r');"
        "assert 'n5zarr.store.url_adapter' not in sys.modules;"
        "import n5zarr.store.url_adapter as a; print(a.N5UrlAdapter.__name__)"
    )
    assert programs.run(code).stdout.split() == ["N5UrlAdapter"]
