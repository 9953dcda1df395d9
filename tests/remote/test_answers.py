"""Each library gives the same kind of error for what a server answers, in one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5UnsupportedError
from tests.remote import servers
from tests.remote.conftest import PATIENCE, options_of

SHAPE, CHUNKS = (5, 7, 11), (3, 4, 6)
VALUES = np.arange(1, 386, dtype="u2").reshape(SHAPE)
LIBRARIES = ["http fsspec", "http obstore", "s3 fsspec", "s3 obstore", "s3"]
# what S3 says: docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
CODES = {
    400: "InvalidRequest", 401: "Unauthorized", 403: "AccessDenied", 404: "NoSuchBucket",
    429: "TooManyRequests", 500: "InternalError", 503: "SlowDown",
}  # fmt: skip
WORDS = "Words of the server"


class Refusing(servers.LyingFiles):
    """Files; some requests get another answer."""

    status: int | str = 200
    is_meant: Callable[[str], bool] = staticmethod(lambda path: False)

    def do_GET(self) -> None:  # noqa: N802 - as the base wants
        if not self.is_meant(self.path):
            if "list-type" in self.path or self.path.startswith("/lab?"):
                self.say(
                    200, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
                )
                return
            self.path = self.path.partition("?")[0]
            super().do_GET()
        elif self.status == "silent":
            self.connection.settimeout(30)
            with suppress(OSError):
                self.connection.recv(1)  # until the client gives up
            self.close_connection = True
        elif self.status == "closed":
            self.close_connection = True
            self.connection.close()
        else:
            code = CODES[int(self.status)]
            self.say(
                int(self.status),
                '<?xml version="1.0" encoding="UTF-8"?>\n'
                f"<Error><Code>{code}</Code><Message>{WORDS}</Message></Error>",
            )

    do_HEAD = do_GET  # noqa: N815 - as above

    def say(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode() if self.command == "GET" else b"")


def options(library: str, url: str, status: int | str) -> dict[str, Any]:
    return options_of(library, url, 0.5 if status == "silent" else PATIENCE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    made: Any = n5zarr.create_array(
        root / "lab" / "c.n5", path="a", shape=SHAPE, chunks=CHUNKS, dtype="u2"
    )
    made[...] = VALUES
    for version in (2, 3):
        group = zarr.open_group(root / "lab" / f"{version}.zarr", mode="w", zarr_format=version)
        group.create_array("a", data=VALUES, chunks=CHUNKS)
        level = {"path": "a", "coordinateTransformations": [{"type": "scale", "scale": [1.0] * 3}]}
        axes = [{"name": name, "type": "space"} for name in "zyx"]
        image: Any = {"axes": axes, "datasets": [level]}
        if version == 2:
            group.attrs["multiscales"] = [image | {"version": "0.4"}]
        else:
            group.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
    return root


@pytest.fixture(params=LIBRARIES)
def place(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Callable[[int | str], dict[str, Any]], Any]]:
    monkeypatch.setattr(s3fs.core.S3FileSystem, "retries", 1)

    class Handler(Refusing):
        pass

    with servers.serving(partial(Handler, directory=str(folder))) as url:
        root = "s3://lab" if request.param.startswith("s3") else f"{url}/lab"
        yield root, partial(options, request.param, url), Handler


def is_chunk(path: str) -> bool:
    return re.search(r"/a/(c/)?\d[\d./]*$", path.partition("?")[0]) is not None


# kinds of errors, as docs/remote.md has them
KINDS: dict[int | str, type[OSError]] = {
    400: OSError, 401: PermissionError, 403: PermissionError, 404: OSError, 429: OSError,
    500: OSError, 503: OSError, "silent": TimeoutError, "closed": ConnectionError,
}  # fmt: skip


def check(err: BaseException, status: int | str) -> None:
    assert type(err) is KINDS[status], err
    text = str(err)
    assert "\n" not in text
    assert "Debug source" not in text
    assert isinstance(status, str) or str(status) in text or CODES[status] in text, text


@pytest.mark.each_of(9)
@pytest.mark.parametrize("status", [status for status in KINDS if status != 404])
def test_each_library_tells_the_same(place: Any, status: int | str) -> None:
    root, options_for, handler = place
    given, handler.status = options_for(status), status
    container = f"{root}/c.n5"
    plain = N5Store(container, **given)

    def opened() -> Any:
        return n5zarr.open_array(container, path="a", **given)

    for is_meant, call in (
        (lambda path: "a/attributes.json" in path, opened),
        (is_chunk, lambda: opened()[...]),
        (is_chunk, lambda: zarr.open_array(plain, path="a", mode="r")[...]),
        (is_chunk, lambda: opened().read_boxes([(1, 1, 1)], (2, 3, 5))),
    ):
        handler.is_meant = staticmethod(is_meant)
        with pytest.raises(OSError, match=f"{container}: a/") as raised:
            call()
        check(raised.value, status)


@pytest.mark.each_of(5)
@pytest.mark.parametrize("status", KINDS)
@pytest.mark.parametrize("place", [name for name in LIBRARIES if name[:2] == "s3"], indirect=True)
def test_lists_that_are_refused_keep_the_words_of_the_server(place: Any, status: int | str) -> None:
    root, options_for, handler = place
    given, handler.status = options_for(status), status
    handler.is_meant = staticmethod(lambda path: "list-type" in path)
    with pytest.raises(OSError, match=r"c\.n5: /: ") as raised:
        sorted(n5zarr.open_group(f"{root}/c.n5", **given))
    check(raised.value, status)


@pytest.mark.each_of(27)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("status", [status for status in KINDS if status != 404])
def test_chunks_of_zarr_fail_like_blocks(
    place: Any, status: int | str, version: int, tmp_path: Path
) -> None:
    root, options_for, handler = place
    source, given = f"{root}/{version}.zarr", options_for(status)
    handler.status = status
    handler.is_meant = staticmethod(is_chunk)
    calls = (
        lambda: n5zarr.convert(f"{source}/a", tmp_path / "plain.n5", **given),
        lambda: n5zarr.thumbnail(source, **given),
        lambda: xr.open_dataset(source, engine="n5", group="a", **given).load(),
        lambda: xr.open_dataset(f"{source}/a", engine="n5", **given).load(),
        lambda: n5zarr.open_level(source, {}, **given).load(),
    )
    for call in calls[:1] if status == "silent" else calls:
        with pytest.raises(OSError, match=r"\.zarr(/a)?: (a/)?(c/)?\d[./]\d[./]\d: ") as raised:
            call()
        check(raised.value, status)


@pytest.mark.parametrize("status", [403, 404, 500])
def test_chunks_that_are_not_listed_are_not_missing(status: int, folder: Path) -> None:
    class Handler(Refusing):
        is_meant = staticmethod(lambda path: path.endswith("/"))

    Handler.status = status
    kind = N5UnsupportedError if status in (403, 404) else OSError  # as of N5
    with servers.serving(partial(Handler, directory=str(folder))) as url:
        backends: tuple[Any, ...] = (None, "fsspec")
        for backend in backends:
            with pytest.raises(kind):
                n5zarr.block_statistics(f"{url}/lab/2.zarr", path="s0", backend=backend)
