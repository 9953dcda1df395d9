"""Below a node of Zarr, groups are searched for N5, and directories of chunks are not."""

from __future__ import annotations

import pytest

from n5zarr.container.foreign import check_n5
from n5zarr.errors import N5FormatError
from n5zarr.storage.requests import Entry, Get, List


def listings(keys: list[str]) -> list[str]:
    """Check a root that has these keys, and return its listings."""

    def entries(path: str) -> list[Entry]:
        prefix = f"{path}/" if path else ""
        below = [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]
        names = dict(sorted((name, bool(inner)) for name, _, inner in map(split, below)))
        return [Entry(name, is_dir) for name, is_dir in names.items()]

    def split(key: str) -> tuple[str, str, str]:
        return key.partition("/")

    listed: list[str] = []
    steps = check_n5("", entries(""))
    try:
        requests = next(steps)
        while True:
            assert len(requests) <= 64
            listed += [request.path for request in requests if isinstance(request, List)]
            requests = steps.send(
                [b"{}" if isinstance(r, Get) else entries(getattr(r, "path", "")) for r in requests]
            )
    except StopIteration:
        return listed
    except N5FormatError:
        return [*listed, "refused"]


def test_every_group_is_searched() -> None:
    keys = ["zarr.json", *(f"g{i:03}/zarr.json" for i in range(101)), "g100/x/y/attributes.json"]
    assert listings(keys)[-1] == "g100/x/y"
    assert listings(keys[:-1])[-1] == "refused"


@pytest.mark.parametrize(
    ("array", "chunk"), [("em/zarr.json", "em/c/{}/{}/{}"), ("em/.zarray", "em/{}/{}/{}")]
)
def test_one_directory_of_chunks_tells_of_all(array: str, chunk: str) -> None:
    chunks = [chunk.format(i, j, k) for i in range(7) for j in range(5) for k in range(3)]
    top = chunk.partition("/{}")[0]
    listed = listings([".zgroup", array, *chunks])
    assert listed == list(dict.fromkeys(["em", top, f"{top}/0", f"{top}/0/0", "refused"]))


def test_groups_named_by_numbers_are_searched() -> None:
    assert listings(["zarr.json", "c/0/s0/attributes.json", "c/1/s0/attributes.json"])[-1] == (
        "c/0/s0"
    )


def test_the_search_ends() -> None:
    assert len(listings([".zgroup", *(f"g{i}/x/a" for i in range(2000))])) in range(1000, 1066)
