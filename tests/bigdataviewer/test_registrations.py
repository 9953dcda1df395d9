"""Registrations in the XML of a project place its views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from n5zarr.bigdataviewer.description import parse_xml
from n5zarr.conventions.find import find_geometry
from tests.unit.conventions.test_conventions import TRUTH, check, geometry_of, node


def xml_of(*transforms: str, size: str = "0.2 0.3 1.5", unit: str = "um") -> bytes:
    listed = "".join(transforms)
    return f"""<SpimData><SequenceDescription><ImageLoader><n5>c.n5</n5></ImageLoader><ViewSetups>
    <ViewSetup><id>3</id><voxelSize><unit>{unit}</unit><size>{size}</size></voxelSize></ViewSetup>
    </ViewSetups></SequenceDescription><ViewRegistrations>
    <ViewRegistration timepoint="7" setup="3">{listed}</ViewRegistration>
    </ViewRegistrations></SpimData>""".encode()


def affine(*rows: list[float]) -> str:
    numbers = " ".join(str(value) for row in rows for value in row)
    return f'<ViewTransform type="affine"><affine>{numbers}</affine></ViewTransform>'


SCALED = affine([0.2, 0, 0, 0], [0, 0.3, 0, 0], [0, 0, 1.5, 0])
MOVED = affine([1, 0, 0, 10], [0, 1, 0, -20], [0, 0, 1, 30])


def registered(xml: bytes, factors: list[int] | None = None, **how: Any) -> Any:
    description = parse_xml(xml)
    assert description is not None
    path = ("setup3", "timepoint7", "s1")
    view = node(
        {"downsamplingFactors": factors or [1, 1, 1]}, path=path, view=description.view(3, 7)
    )
    return find_geometry(view, **how)


@pytest.mark.parametrize(
    "xml", [b"", b"<a>", b"<SpimData/>", b"<!DOCTYPE a []><SpimData/>", b"\x00"], ids=str
)
def test_any_other_xml_is_none_of_bigdataviewer(xml: bytes) -> None:
    assert parse_xml(xml) is None


def test_the_transform_that_is_listed_last_is_applied_first() -> None:
    """As in spimdata."""
    axes = registered(xml_of(MOVED, SCALED)).geometry.axes
    assert [axis.scale for axis in axes] == [0.2, 0.3, 1.5]
    assert [axis.translation for axis in axes] == [10, -20, 30]
    assert {axis.unit for axis in axes} == {"um"}
    axes = registered(xml_of(SCALED, MOVED)).geometry.axes
    assert [axis.translation for axis in axes] == pytest.approx([2, -6, 45])
    # levels are of averages, in elements of full resolution
    axes = registered(xml_of(MOVED, SCALED), [2, 3, 1]).geometry.axes
    assert [axis.scale for axis in axes] == pytest.approx([0.4, 0.9, 1.5])
    assert [axis.translation for axis in axes] == pytest.approx([10.1, -19.7, 30])
    assert registered(xml_of()).geometry.axes[2].scale == 1  # an empty list is the identity


def test_a_view_that_looks_the_other_way_goes_down() -> None:
    found = registered(xml_of(MOVED, affine([-0.2, 0, 0, 0], [0, 0.3, 0, 0], [0, 0, 1.5, 0])))
    assert not found.problems
    assert (found.geometry.axes[0].scale, found.geometry.axes[0].translation) == (-0.2, 10)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, -0.3, 0, 5], [0.2, 0, 0, 6], [0, 0, 1.5, 7]],  # a quarter of a turn
        [[0.2, 0, 0.7, 5], [0, 0.3, 0, 6], [0, 0, 1.5, 7]],  # a sheared light sheet
        [[0.19, -0.05, 0.01, 5], [0.04, 0.31, 0.2, 6], [0.01, 0.02, -1.4, 7]],
    ],
    ids=str,
)
def test_a_rotation_or_shear_is_left_as_the_rest(matrix: list[list[float]]) -> None:
    found = registered(xml_of(affine(*matrix)), [2, 3, 1])
    assert len(found.problems) == 1
    assert "turns or shears" in found.problems[0]
    axes, rest = found.geometry.axes, np.array(found.geometry.rest)
    assert [axis.unit for axis in axes] == ["um"] * 3
    # what is left takes positions to where the registration takes elements
    factors = np.array([2, 3, 1])
    for index in ([0, 0, 0], [4, 1, 2], [3, 5, 7]):
        place = [axis.scale * i + axis.translation for axis, i in zip(axes, index, strict=True)]
        world = np.array(matrix) @ [*(factors * index + (factors - 1) / 2), 1]
        np.testing.assert_allclose(rest @ [*place, 1], world)
    # the view is where its first element is, with the distances that it has in the world
    first = [
        axis.translation - axis.scale * (f - 1) / 2 / f
        for axis, f in zip(axes, factors, strict=True)
    ]
    np.testing.assert_allclose(first, [5, 6, 7])
    lengths = np.linalg.norm(np.array(matrix)[:, :3], axis=0)
    np.testing.assert_allclose([axis.scale for axis in axes], lengths * factors)


def test_rounding_is_no_rotation() -> None:
    found = registered(xml_of(affine([0.2, 1e-17, 0, 0], [0, 0.3, -1e-16, 0], [0, 0, 1.5, 0])))
    assert not found.problems
    assert not found.geometry.rest


def test_bigstitcher_counts_in_elements_of_the_finest_resolution() -> None:
    calibration = affine([1, 0, 0, 0], [0, 1.5, 0, 0], [0, 0, 7.5, 0])
    axes = registered(xml_of(MOVED, calibration)).geometry.axes
    assert [axis.scale for axis in axes] == pytest.approx([0.2, 0.3, 1.5])
    assert [axis.translation for axis in axes] == pytest.approx([2, -4, 6])
    assert {axis.unit for axis in axes} == {"um"}
    # also if it stretches the sample a little; but else the world is in the unit of the XML
    stretched = affine([1.02, 0, 0, 0], [0, 1.49, 0, 0], [0, 0, 7.6, 0])
    axes = registered(xml_of(MOVED, stretched)).geometry.axes
    assert [axis.scale for axis in axes] == pytest.approx([0.204, 0.298, 1.52])
    # and where the finest resolution is next to 1
    xml = xml_of(MOVED, affine([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0]), size="0.95 0.95 1.9")
    assert registered(xml).geometry.axes[0].translation == pytest.approx(9.5)
    # of all setups
    finer = b"<ViewSetup><id>4</id><voxelSize><size>0.1 0.1 0.1</size></voxelSize></ViewSetup>"
    xml = xml_of(MOVED, affine([2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 15, 0]))
    xml = xml.replace(b"</ViewSetups>", finer + b"</ViewSetups>")
    assert registered(xml).geometry.axes[0].translation == pytest.approx(1)
    other = affine([3, 0, 0, 0], [0, 3, 0, 0], [0, 0, 3, 0])
    axes = registered(xml_of(MOVED, other)).geometry.axes
    assert [(axis.scale, axis.translation) for axis in axes] == [(3, 10), (3, -20), (3, 30)]


@pytest.mark.parametrize(
    ("xml", "problem"),
    [
        (xml_of(affine([1, 2, 3])), "expected affine transforms of 12 numbers"),
        (xml_of(SCALED, '<ViewTransform type="generic"/>'), "expected affine transforms"),
        (xml_of(SCALED.replace("1.5", "nan")), "expected affine transforms"),
        (xml_of(affine([0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0])), "without a column of zeros"),
        (xml_of(affine([0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0])),
            "'x': expected a finite scale"),
    ],
)  # fmt: skip
def test_registrations_that_cannot_be_meant(xml: bytes, problem: str) -> None:
    found = registered(xml)
    assert len(found.problems) == 1
    assert problem in found.problems[0]


def test_a_view_without_registration_has_the_voxel_size() -> None:
    description = parse_xml(xml_of(MOVED))
    assert description is not None
    for setup, timepoint, scale in ((3, 8, [0.2, 0.3, 1.5]), (4, 7, [1, 1, 1])):
        path = (f"setup{setup}", f"timepoint{timepoint}", "s0")
        axes = geometry_of(node({}, path=path, view=description.view(setup, timepoint))).axes
        assert [axis.scale for axis in axes] == scale
        assert [axis.translation for axis in axes] == [0, 0, 0]
        assert {axis.unit for axis in axes} == ({"um"} if setup == 3 else {None})


def test_a_setup_of_the_xml_without_a_number_is_left_out() -> None:
    xml = xml_of().replace(b"<id>3</id>", b"<id>three</id>")
    description = parse_xml(xml)
    assert description is not None
    assert description.setups == {}
    found = parse_xml(xml_of())
    assert found is not None
    assert [*found.setups] == [3]


def test_levels_of_a_view_are_where_they_were_written_to_be() -> None:
    levels = [each for each in TRUTH if each["convention"] == "bdv"]
    assert len(levels) == 2
    for level in levels:
        check(level)
