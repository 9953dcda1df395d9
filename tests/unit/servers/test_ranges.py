"""What a server sends is compared with what it was asked for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest

from n5zarr.servers.file_systems import is_any, lacks_bucket, limits, made_anew
from n5zarr.servers.ranges import Sent, bounds, check_sent, header_of, part_in_s3, sent_by, taken


@pytest.mark.parametrize("asked", [RangeByteRequest(3, 8), OffsetByteRequest(3)])
def test_fewer_bytes_of_a_value_of_unknown_size_are_an_error(asked: RangeByteRequest) -> None:
    with pytest.raises(OSError, match="expected the bytes 3 to"):
        taken(b"def", asked, 206, "bytes 3-5/*")


def test_all_bytes_of_a_value_of_unknown_size() -> None:
    assert taken(b"defgh", RangeByteRequest(3, 8), 206, "bytes 3-7/*") == b"defgh"
    with pytest.raises(OSError, match="expected the bytes"):  # nobody knows where it ends
        taken(b"defgh", SuffixByteRequest(5), 206, "bytes 3-7/*")


@pytest.mark.parametrize(
    ("asked", "in_ten", "header", "of_fsspec"),
    [
        (RangeByteRequest(3, 7), (3, 7), "bytes=3-6", (3, 7)),
        (RangeByteRequest(3, 12), (3, 10), "bytes=3-11", (3, 12)),
        (RangeByteRequest(11, 12), (10, 10), "bytes=11-11", (11, 12)),
        (OffsetByteRequest(4), (4, 10), "bytes=4-", (4, None)),
        (OffsetByteRequest(12), (10, 10), "bytes=12-", (12, None)),
        (SuffixByteRequest(4), (6, 10), "bytes=-4", (-4, None)),
        (SuffixByteRequest(12), (0, 10), "bytes=-12", (-12, None)),
    ],
)
def test_a_part_in_three_spellings(asked: Any, in_ten: Any, header: str, of_fsspec: Any) -> None:
    """RFC 9110, section 14: the last byte of a range is part of it."""
    assert bounds(asked, 10) == in_ten
    assert header_of(asked) == header
    assert limits(asked) == {"start": of_fsspec[0], "end": of_fsspec[1]}
    assert bounds(None, 10) == (0, 10)
    whole = b"0123456789"
    assert taken(whole, asked, 200, None) == whole[slice(*in_ten)]


def test_the_header_of_an_answer() -> None:
    assert sent_by(" Bytes 0-0/1 ") == Sent(0, 1, 1)
    assert sent_by("bytes 3-6/*") == (3, 7, None)
    for header in (None, "", "bytes */10", "bytes 3-/10", "bytes 3-6", "xbytes 3-6/10"):
        assert sent_by(header) is None


FITTING = [
    (b"345", RangeByteRequest(3, 6), Sent(3, 6, 10)),
    (b"89", RangeByteRequest(8, 12), Sent(8, 10, 10)),
    (b"0123456789", None, Sent(0, 10, 10)),
    (b"89", SuffixByteRequest(2), Sent(8, 10, 10)),
    (b"345", RangeByteRequest(3, 6), None),
    (b"3", RangeByteRequest(3, 6), None),  # the value may end there
    (b"whatever", None, None),
    (b"x" * 9, SuffixByteRequest(9), None),
    (memoryview(b"123456").cast("H"), RangeByteRequest(1, 7), Sent(1, 7, 9)),
]


@pytest.mark.parametrize(("data", "asked", "sent"), FITTING)
def test_the_right_bytes_pass(data: Any, asked: Any, sent: Any) -> None:
    check_sent(data, asked, sent)


@pytest.mark.parametrize(
    ("data", "asked", "sent", "match"),
    [
        (b"3456", RangeByteRequest(3, 6), None, r"the bytes 3 to 6, but the server sends 4 bytes"),
        (b"34", RangeByteRequest(3, 6), Sent(3, 6, 10), "sends 2 bytes, as 3 to 6 of 10"),
        (b"456", RangeByteRequest(3, 6), Sent(4, 7, 10), "sends 3 bytes, as 4 to 7 of 10"),
        (b"34", RangeByteRequest(3, 6), Sent(3, 5, 10), "as 3 to 5 of 10"),
        (b"012", None, Sent(0, 3, 10), "expected the bytes 0 to 10"),
        (b"345", OffsetByteRequest(3), Sent(3, 6, None), "expected the bytes 3 to"),
        (b"x" * 10, SuffixByteRequest(9), None, "sends 10 bytes"),
    ],
)
def test_other_bytes_are_an_error(data: bytes, asked: Any, sent: Any, match: str) -> None:
    with pytest.raises(OSError, match=match) as caught:
        check_sent(data, asked, sent)
    assert caught.value.errno == 5
    if isinstance(sent, Sent) and sent.size is not None:
        header = f"bytes {sent.start}-{sent.stop - 1}/{sent.size}"
        with pytest.raises(OSError, match=match):
            taken(data, asked, 206, header)


def test_a_part_without_a_header() -> None:
    with pytest.raises(OSError, match="but its Content-Range is 'x'") as caught:
        taken(b"345", RangeByteRequest(3, 6), 206, "x")
    assert caught.value.errno == 5


class FakeS3:
    """What is used of s3fs."""

    retries = 1

    def __init__(self, data: bytes, status: int = 206) -> None:
        self.asked: dict[str, Any] = {}
        self.closed = 0
        self._data, self._status = data, status

    def split_path(self, name: str) -> tuple[str, str, str | None]:
        bucket, _, key = name.partition("/")
        key, _, version = key.partition("?v=")
        return bucket, key, version or None

    async def _call_s3(self, method: str, **asked: Any) -> dict[str, Any]:
        self.asked = {"method": method, **asked}
        return {
            "Body": SimpleNamespace(read=self._read, close=self._close),
            "ResponseMetadata": {"HTTPStatusCode": self._status},
            "ContentRange": "bytes 3-5/10",
        }

    async def _read(self) -> bytes:
        return self._data

    def _close(self) -> None:
        self.closed += 1


def test_a_part_of_an_object_in_s3() -> None:
    pytest.importorskip("s3fs")
    fs, asked = FakeS3(b"345"), RangeByteRequest(3, 6)
    assert asyncio.run(part_in_s3(fs, "lab/a/b", asked)) == b"345"
    expected = {"method": "get_object", "Bucket": "lab", "Key": "a/b", "Range": "bytes=3-5"}
    assert (fs.asked, fs.closed) == (expected, 1)
    whole = FakeS3(b"0123456789", 200)
    assert asyncio.run(part_in_s3(whole, "lab/a?v=2", asked)) == b"345"
    assert whole.asked["VersionId"] == "2"
    with pytest.raises(OSError, match="sends 2 bytes"):
        asyncio.run(part_in_s3(FakeS3(b"34"), "lab/a", asked))


def test_file_systems_are_known_by_their_protocols() -> None:
    def fs(protocol: Any) -> Any:
        return SimpleNamespace(protocol=protocol)

    assert [is_any(fs(p), {"s3", "gs"}) for p in ("s3", ("s3a", "s3"), "s", ("http",))] == [
        True, True, False, False,
    ]  # fmt: skip
    for response, expected in [
        ({"Error": {"Code": "NoSuchBucket"}}, True), ({"Error": {"Code": "NoSuchKey"}}, False),
        ({}, False), (None, False),
    ]:  # fmt: skip
        err, cause = FileNotFoundError(), ValueError()
        cause.response = response  # type: ignore[attr-defined]
        err.__cause__ = cause
        assert lacks_bucket(err) is expected
    assert not lacks_bucket(ValueError())


def test_a_file_system_that_cannot_be_made_anew() -> None:
    fs: Any = SimpleNamespace(lock=lambda: 0)
    with pytest.raises(NotImplementedError, match=r"SimpleNamespace: .*cannot be made anew"):
        made_anew(fs)
