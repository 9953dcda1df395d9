"""What a server sends is compared with what it was asked for."""

from __future__ import annotations

import pytest
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest

from n5zarr.servers.ranges import taken


@pytest.mark.parametrize("asked", [RangeByteRequest(3, 8), OffsetByteRequest(3)])
def test_fewer_bytes_of_a_value_of_unknown_size_are_an_error(asked: RangeByteRequest) -> None:
    with pytest.raises(OSError, match="expected the bytes 3 to"):
        taken(b"def", asked, 206, "bytes 3-5/*")


def test_all_bytes_of_a_value_of_unknown_size() -> None:
    assert taken(b"defgh", RangeByteRequest(3, 8), 206, "bytes 3-7/*") == b"defgh"
    with pytest.raises(OSError, match="expected the bytes"):  # nobody knows where it ends
        taken(b"defgh", SuffixByteRequest(5), 206, "bytes 3-7/*")
