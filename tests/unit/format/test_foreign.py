"""Other formats are told by their signatures and the names of their documents."""

from __future__ import annotations

import pytest

from n5zarr.format.foreign import file_from, root_in_zip, zarr_node

HDF5 = bytes([0x89, 0x48, 0x44, 0x46, 0x0D, 0x0A, 0x1A, 0x0A])  # its specification, III.A


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (HDF5 + b"\0" * 100, "an HDF5 file"),
        (b"\0" * 512 + HDF5, "an HDF5 file"),
        (b"\0" * 2048 + HDF5, "an HDF5 file"),
        (b"\0" * 4096 + HDF5, "a file"),
        (b"\0" * 100 + HDF5, "a file"),  # the signature is only at these places
        (b"PK\x03\x04rest", "a zip file"),
        (b"PK\x05\x06" + b"\0" * 18, "a zip file"),
        (b'<?xml version="1.0"?>\n<SpimData version="0.2">', "an XML file of BigDataViewer"),
        (b'\xef\xbb\xbf<SpimData version="0.2">', "an XML file of BigDataViewer"),
        (b"<html><body>", "a file"),
        (b"", "a file"),
    ],
)
def test_files_by_their_first_bytes(start: bytes, what: str) -> None:
    assert file_from(start).what == what


@pytest.mark.parametrize(
    ("names", "document", "zarr_format", "what"),
    [
        (["c", "zarr.json"], b'{"zarr_format":3,"node_type":"array"}', 3, "array"),
        (["c", "zarr.json"], b'{"zarr_format":3,"node_type":"group"}', 3, "group"),
        (["zarr.json"], b'{"node_type": "odd"}', 3, None),
        (["zarr.json"], b"{", 3, None),
        (["zarr.json"], b"[]", 3, None),
        (["zarr.json"], None, 3, None),
        (["zarr.json", ".zgroup"], b'{"node_type": "group"}', None, "group"),
        ([".zarray", ".zattrs", "0.0"], None, 2, "array"),
        ([".zarray", ".zgroup"], None, 2, "array"),
        ([".zgroup", ".zattrs"], None, 2, "group"),
    ],
)
def test_zarr_by_the_names_of_its_documents(
    names: list[str], document: bytes | None, zarr_format: int | None, what: str | None
) -> None:
    found = zarr_node(names, document)
    assert found is not None
    assert (found.zarr_format, found.kind) == (zarr_format, what)
    if zarr_format is not None:
        assert found.what == f"a Zarr v{zarr_format} {what or 'node'}"
    assert str(found) == f"{found.what}; open it with zarr.open(...) or xr.open_zarr(...)"


def test_other_documents_are_not_of_zarr() -> None:
    assert zarr_node([".zattrs", "zarr.txt"], None) is None


@pytest.mark.parametrize(
    ("names", "root"),
    [
        (["a/attributes.json", "attributes.json"], ""),
        (["x/b.n5/em/attributes.json", "x/b.n5/attributes.json"], "x/b.n5"),
        (["myattributes.json", "a.txt"], None),
        ([], None),
    ],
)
def test_the_container_in_an_archive_is_the_topmost_document(
    names: list[str], root: str | None
) -> None:
    assert root_in_zip(names) == root
