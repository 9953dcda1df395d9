"""Setups of a project become images, with their names and settings."""

from __future__ import annotations

from typing import Any

from n5zarr.bigdataviewer.description import parse_settings
from n5zarr.bigdataviewer.images import _images, _names


def test_settings_that_cannot_be_parsed_are_left_out() -> None:
    assert parse_settings(b"<Settings") == {}
    assert parse_settings(b"<!DOCTYPE a><Settings/>") == {}
    xml = "".join(
        f"<ConverterSetup><id>{i}</id><min>{low}</min><max>9</max><color>{color}</color>"
        "</ConverterSetup>"
        for i, low, color in ((0, 9, -1), (1, "a", -1), (2, 0, ""), (3, -4, -16776961))
    )
    found = parse_settings(f"<S><ConverterSetups>{xml}</ConverterSetups></S>".encode())
    assert found == {3: ((-4.0, 9.0), "0000FF")}


def test_names_of_setups_become_different_names_of_groups() -> None:
    names = _names({0: "Tile 1, 488 nm", 1: "../x", 2: "OME", 3: "é", 4: "a/b", 5: "A_B", 6: "__"})
    assert len({name.lower() for name in names.values()}) == 7
    for name in names.values():
        assert not set(name) - set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
        )
        assert name.strip("._")
        assert not name.startswith("__")
        assert name != "OME"


def test_one_recorded_time_point_among_several_is_a_series() -> None:
    view: Any = type("View", (), {"dataset": type("D", (), {"shape": (3, 5, 7), "data_type": 1})})
    description: Any = type(
        "Described", (), {"timepoints": (4, 6), "setups": {}, "registrations": {}}
    )
    (image,) = _images(0, "a", {"s0": {6: view}}, description)
    assert (image.timepoints, image.is_stacked) == ((4, 6), True)
    (image,) = _images(0, "a", {"s0": {6: view}}, None)
    assert (image.timepoints, image.is_stacked) == ((6,), False)
