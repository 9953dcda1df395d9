"""Servers that send other bytes than they were asked for: an error, never wrong numbers."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.buffer import cpu

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5Error
from tests.remote import servers
from tests.remote.conftest import options_of
from tests.remote.servers import Answer

SHAPE, BLOCK = (11, 307, 331), (331, 307, 11)  # more than 1 MiB: rows of it are read alone
VALUES = np.random.default_rng(7).integers(0, 251, SHAPE, "u1")
KEY = "a/0/0/0"


def other(answer: Answer, whole: bytes) -> Answer | None:
    start, stop = answer.start + 5, min(answer.stop + 5, answer.size)
    return answer._replace(start=start, stop=stop, body=whole[start:stop])


def same_told(answer: Answer, whole: bytes) -> Answer | None:
    """Send other bytes than the server says, and more of them."""
    return answer._replace(body=whole[max(0, answer.start - 3) : answer.stop])


LIES: dict[str, Callable[[Answer, bytes], Answer | None]] = {
    "none": lambda answer, whole: None,
    "other bytes": other,
    "fewer bytes": lambda a, whole: a._replace(stop=a.stop - 3, body=a.body[:-3]),
    "fewer than told": lambda a, whole: a._replace(body=a.body[:-3]),
    "more than told": same_told,
    "all, as a part": lambda a, whole: a._replace(start=0, stop=a.size, body=whole),
    "another size": lambda a, whole: a._replace(size=a.size - 9),
    "no range told": lambda a, whole: a._replace(size=-1),
    "all": lambda a, whole: a._replace(status=200, body=whole),
}


def about_parts(lie: str) -> Callable[[Answer, bytes], Answer | None]:
    return lambda answer, whole: LIES[lie](answer, whole) if answer.status == 206 else None


RIGHT = {"none", "all"}  # a server that knows no ranges sends all
LIBRARIES = ["http fsspec", "http obstore", "http", "s3 fsspec", "s3 obstore"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    dataset = folder / "c.n5" / "a"
    (dataset / "0" / "0").mkdir(parents=True)
    (folder / "c.n5" / "attributes.json").write_text('{"n5": "2.0.0"}')
    (dataset / "attributes.json").write_text(
        f'{{"dimensions": {[*BLOCK]}, "blockSize": {[*BLOCK]}, "dataType": "uint8",'
        ' "compression": {"type": "raw"}}'
    )
    header = struct.pack(">HHIII", 0, 3, *BLOCK)
    (folder / "c.n5" / KEY).write_bytes(header + VALUES.tobytes())
    sharded = zarr.create_array(
        folder / "z.zarr", shape=(13, 17, 19), shards=(6, 10, 19), chunks=(3, 5, 19),
        dtype="u1", compressors=None,
    )  # fmt: skip
    sharded[...] = VALUES[:5, :17, :19].repeat(3, 0)[:13]
    return folder


@pytest.fixture(params=LIBRARIES)
def lying(request: pytest.FixtureRequest, files: Path) -> Iterator[tuple[str, dict[str, Any], Any]]:
    class Handler(servers.LyingFiles):
        pass

    root = files.parent if request.param.startswith("s3") else files
    with servers.serving(partial(Handler, directory=str(root))) as url:
        place = f"s3://{files.name}" if request.param.startswith("s3") else url
        yield place, options_of(request.param, url), Handler


REQUESTS: dict[str, Any] = {
    "range": RangeByteRequest(7, 70),
    "range to the end": RangeByteRequest(1000, 10**9),
    "offset": OffsetByteRequest(1_100_000),
    "suffix": SuffixByteRequest(53),
}


@pytest.mark.each_of(4)
@pytest.mark.parametrize("lie", LIES)
def test_a_part_is_the_one_that_was_asked_for(lying: Any, lie: str, files: Path) -> None:
    """The header of the answer and its length tell; RFC 9110, sections 14.4 and 15.3.7."""
    place, given, handler = lying
    whole = (files / "c.n5" / KEY).read_bytes()
    expected = {
        "range": whole[7:70],
        "range to the end": whole[1000:],
        "offset": whole[1_100_000:],
        "suffix": whole[-53:],
    }
    store = N5Store(f"{place}/c.n5", codecs="n5", read_only=True, **given)
    keys = [(store.storage.store, KEY, REQUESTS)]  # where Zarr is read, and N5 as Zarr
    keys += [(store, "a/c/0/0/0", {"range": REQUESTS["range"]})]
    handler.lie = staticmethod(about_parts(lie))
    knows_only_ranges = lie == "all" and "obstore" in given.values()
    n_right = 0
    for from_store, key, requests in keys:
        for name, asked in requests.items():
            try:
                found = sync(from_store.get(key, cpu.buffer_prototype, asked))
            except OSError as err:
                says = str(err)
            else:
                assert found is not None
                assert found.to_bytes() == expected[name], name
                n_right += from_store is not store  # which may read the whole block
                continue
            assert re.search(rf"c\.n5: {KEY}: [^\n]*$", says)
            assert lie not in RIGHT or knows_only_ranges, says
    # a part that is as it should be, of a file of another size
    is_plausible = lie == "another size" and "range"
    assert n_right == (
        len(REQUESTS) if lie in RIGHT and not knows_only_ranges else bool(is_plausible)
    )


@pytest.mark.parametrize("lying", ["http fsspec"], indirect=True)
def test_a_part_is_no_whole_file(lying: Any) -> None:
    """Whoever asks for all gets no part; obstore and s3fs do not show whether an answer is one."""
    place, given, handler = lying
    store = N5Store(f"{place}/c.n5", read_only=True, **given).storage.store
    handler.lie = staticmethod(lambda a, whole: a._replace(status=206, stop=99, body=whole[:99]))
    if given.get("backend") != "fsspec" or place.startswith("s3"):
        pytest.skip("neither obstore nor s3fs show the headers of such an answer")
    with pytest.raises(
        OSError, match=f"{KEY}: expected the bytes 0 to .*, but the server sends 99"
    ):
        sync(store.get(KEY, cpu.buffer_prototype))


@pytest.mark.each_of(4)
@pytest.mark.parametrize("lie", LIES)
def test_no_reader_takes_other_bytes_for_values(
    lying: Any, lie: str, files: Path, tmp_path: Path
) -> None:
    place, given, handler = lying
    array: Any = n5zarr.open_array(f"{place}/c.n5", path="a", **given)
    sharded = zarr.open_array(files / "z.zarr", mode="r")[...]

    def of_zarr() -> np.ndarray[Any, Any]:
        n5zarr.convert(f"{place}/z.zarr", tmp_path / "z.n5", **given)
        return np.asarray(n5zarr.open_array(tmp_path / "z.n5")[...])

    handler.lie = staticmethod(about_parts(lie))
    for read, expected in (
        (lambda: array[3:5], VALUES[3:5]),
        (lambda: array.read_boxes([(2, 1, 3)], (3, 7, 5))[0], VALUES[2:5, 1:8, 3:8]),
        (lambda: array[...], VALUES),
        (of_zarr, sharded),
    ):
        try:
            found = read()
        except (OSError, N5Error):
            assert lie != "none"
            continue
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("lie", ["none", "other bytes", "fewer than told"])
def test_several_parts_at_once(lying: Any, lie: str, files: Path) -> None:
    place, given, handler = lying
    store = N5Store(f"{place}/c.n5", read_only=True, **given).storage.store
    whole = (files / "c.n5" / KEY).read_bytes()
    handler.lie = staticmethod(about_parts(lie))
    parts: list[tuple[str, Any]] = [
        (KEY, RangeByteRequest(7, 70)),
        (KEY, SuffixByteRequest(5)),
        ("a/1", None),
    ]
    asked = store.get_partial_values(cpu.buffer_prototype, parts)
    if lie == "none":
        found = [each and each.to_bytes() for each in sync(asked)]
        assert found == [whole[7:70], whole[-5:], None]
        return
    with pytest.raises(OSError, match=KEY):
        sync(asked)
