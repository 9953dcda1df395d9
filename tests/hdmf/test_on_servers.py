"""A session on a server: ten seconds of one electrode, and nothing else of the recording.

hdmf-zarr reads the same data from Zarr, in the same chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from hdmf_zarr import NWBZarrIO, ZarrDataIO
from zarr.storage import FsspecStore

import n5zarr
from n5zarr.errors import N5UnsupportedError
from n5zarr.hdmf import NWBN5IO
from tests.hdmf.sessions import new, series
from tests.remote import servers
from tests.remote.conftest import chosen_options, fsspec_options, upload

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata:zarr.errors.ZarrUserWarning")

RATE, N_ELECTRODES, CHUNKS = 1009, 7, (3001, 2)
DATA = np.random.default_rng(5).integers(-999, 999, (60 * RATE, N_ELECTRODES), "int16")
START, STOP, ELECTRODE = 23 * RATE, 33 * RATE, 5
WANTED = {f"{ELECTRODE // 2}/{k}" for k in range(START // 3001, (STOP - 1) // 3001 + 1)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sessions")
    for io, name in ((NWBN5IO, "a.n5"), (NWBZarrIO, "a.zarr")):
        file = new(series("raw", ZarrDataIO(DATA, chunks=CHUNKS)))
        for number in range(5):  # beside what is read
            file.add_scratch(np.arange(number + 2.0), name=f"s{number}", description="d")
        file.add_trial(start_time=1.0, stop_time=2.0)
        with io(str(root / name), mode="w") as writer:
            writer.write(file)
    return root


class Read:
    """What one session sends: to open and read it, then for ten seconds of an electrode."""

    def __init__(self, proxy: servers.Proxy, opened: Callable[[], Any], folder: Path) -> None:
        proxy.requests.clear()
        with opened() as io:
            data = io.read().acquisition["raw"].data
            self.opening = list(proxy.requests)
            proxy.requests.clear()
            np.testing.assert_array_equal(data[START:STOP, ELECTRODE], DATA[START:STOP, ELECTRODE])
        self.reading = list(proxy.requests)
        keys = [unquote(urlsplit(path).path).lstrip("/") for _, path in self.reading]
        self.keys = [key.removeprefix("lab/") for key in keys]
        # Zarr names the first axis first
        names = [key.partition("raw/data/")[2].removeprefix("c/").split("/") for key in self.keys]
        self.blocks = {"/".join(name if ".n5" in keys[0] else name[::-1]) for name in names}
        self.n_bytes = sum((folder / key).stat().st_size for key in {*self.keys})


@contextmanager
def served(kind: str, folder: Path) -> Iterator[servers.Proxy]:
    files = servers.LyingFiles if kind == "no lists" else servers.Files  # the first sends ranges
    here = servers.serving(partial(files, directory=str(folder)))
    with servers.s3() if kind == "s3" else here as url, servers.Proxy(url).running() as proxy:
        if kind == "s3":
            for name in ("a.n5", "a.zarr"):
                upload(url, "lab", folder / name)
        yield proxy


@pytest.mark.parametrize("kind", ["s3", "http"])
def test_ten_seconds_of_an_electrode_are_read_without_the_rest(kind: str, folder: Path) -> None:
    with served(kind, folder) as proxy:
        base = "s3://lab" if kind == "s3" else proxy.url
        ours: Any = {"storage_options": chosen_options(proxy.url)} if kind == "s3" else {}
        theirs: Any = {"storage_options": fsspec_options(proxy.url)} if kind == "s3" else {}
        n5 = Read(proxy, lambda: NWBN5IO(f"{base}/a.n5", mode="r", **ours), folder)
        plain = Read(proxy, lambda: NWBZarrIO(f"{base}/a.zarr", mode="r", **theirs), folder)
    assert n5.blocks == plain.blocks == WANTED
    assert len(n5.reading) == len(WANTED) <= len(plain.reading)
    assert 0 < n5.n_bytes - plain.n_bytes <= 20 * len(WANTED)  # the headers of blocks
    documents = [*(folder / "a.n5").rglob("attributes.json")]
    groups = [path for path in documents if '"dataType"' not in path.read_text(encoding="utf-8")]
    asked = Counter(path for _, path in n5.opening)
    blocks = [path for path in asked if path.rpartition("/")[2].isdigit()]
    # nothing twice, but documents of what holds no block; S3 has a folder without a document
    assert asked.total() - len(blocks) <= len(documents) + len(groups) + (6 if kind == "s3" else 4)


def test_references_are_read_with_fewer_requests_than_zarr(folder: Path, tmp_path: Path) -> None:
    with served("no lists", folder) as proxy:
        written = n5zarr.virtualize(
            folder / "a.n5", tmp_path / "a.json", coords=False, zarr_format=3,
            url=f"{proxy.url}/a.n5",
        )  # fmt: skip
        options = {
            "fo": written.path, "remote_protocol": "http", "asynchronous": True,
            "remote_options": {"asynchronous": True},
        }  # fmt: skip
        store = FsspecStore.from_url("reference://", storage_options=options)
        found = Read(proxy, lambda: NWBZarrIO(store, mode="r"), folder)
        plain = Read(proxy, lambda: NWBZarrIO(f"{proxy.url}/a.zarr", mode="r"), folder)
        assert found.blocks == WANTED
        assert len(found.opening) < len(plain.opening)
        with pytest.raises(N5UnsupportedError, match="does not list") as raised:
            NWBN5IO(f"{proxy.url}/a.n5", mode="r")
        assert "cookbook" in raised.value.__notes__[0]
