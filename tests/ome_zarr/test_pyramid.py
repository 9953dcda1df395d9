"""``build_pyramid`` writes levels of OME-Zarr that validators and other readers accept."""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from zarr.errors import ZarrUserWarning
from zarr.storage import MemoryStore

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError, N5Warning
from tests.command import CliRunner
from tests.contract.stored import contents
from tests.contract.test_ome_zarr import ome_of, placed
from tests.contract.viewers import validate_ome
from tests.ome_zarr.documents import change

SHAPE = (3, 11, 71, 83)
FORMATS = pytest.mark.parametrize("zarr_format", [2, 3], ids=["0.4", "0.5"])
CHANNELS = [
    {"label": c, "color": "00FF00", "window": {"min": 0, "max": 9, "start": 3, "end": 7}}
    for c in "abc"
]


def elements(dtype: str = "u2", seed: int = 5) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 200, SHAPE).astype(dtype)


def write(
    store: Any, zarr_format: Any, *, name: str = "0", path: str = "", **options: Any
) -> zarr.Group:
    """Write an image of one level, by the specifications of 0.4 and 0.5."""
    group = zarr.open_group(store, path=path, mode="w", zarr_format=zarr_format)
    label, others = options.pop("label", None), options.pop("others", {})
    axes = [{"name": "c", "type": "channel"}]
    axes += [{"name": n, "type": "space", "unit": "nanometer"} for n in "zyx"]
    options = {"chunks": (1, 5, 32, 32), "data": elements(), **options}
    if zarr_format == 3:
        options["dimension_names"] = list("czyx")
    group.create_array(name, **options)
    steps = [
        {"type": "scale", "scale": [1.0, 40.0, 8.0, 8.0]},
        {"type": "translation", "translation": [0.0, 100.0, 20.0, 3.0]},
    ]
    datasets = [{"path": name, "coordinateTransformations": steps}]
    image: dict[str, Any] = {"name": "an image", "axes": axes, "datasets": datasets, **others}
    omero: Any = {"omero": {"channels": CHANNELS}} if label is None else {"image-label": label}
    if zarr_format == 3:
        group.attrs.update({"ome": {"version": "0.5", "multiscales": [image], **omero}})
    else:
        group.attrs.update({"multiscales": [{"version": "0.4", **image}], **omero})
    group.attrs["own"] = {"a": [1, 2]}
    return group


def mean(data: np.ndarray[Any, Any], factors: list[int]) -> np.ndarray[Any, Any]:
    """Combine elements with tensorstore."""
    array = tensorstore.array(data)
    found: np.ndarray[Any, Any] = tensorstore.downsample(array, factors, "mean").read().result()
    return found


@pytest.mark.each_of(2)
@pytest.mark.parametrize(
    ("zarr_format", "name"),
    [(2, "0"), (2, "s0"), (3, "s0"), (3, "0"), (3, "scale0/image"), (2, "scale0/image")],
    ids=str,
)
def test_levels_are_those_of_tensorstore_and_validate(
    tmp_path: Path, zarr_format: Any, name: str
) -> None:
    path = tmp_path / "an.ome.zarr"
    write(path, zarr_format, name=name)
    made = n5zarr.build_pyramid(path, levels=3)
    validate_ome(path)
    # voxels of 40, 8, 8 nm: y and x are halved until they have the size of z
    by = [(1, 1, 2, 2), (1, 1, 4, 4), (1, 2, 8, 8)]
    assert [level.factors for level in made.levels] == by
    names = [name, *(name.replace("0", str(k)) for k in (1, 2, 3))]
    assert [level.path for level in made.levels] == names[1:]
    (image,) = ome_of(path)["multiscales"]
    assert [entry["path"] for entry in image["datasets"]] == names
    data = elements()
    for k, factors in enumerate([[1, 1, 2, 2], [1, 1, 2, 2], [1, 2, 2, 2]], 1):
        data = mean(data, factors)
        array: Any = zarr.open_array(path / names[k], mode="r")
        np.testing.assert_array_equal(array[...], data)
        assert array.chunks == (1, 5, 32, 32)
        is_named = array.metadata.zarr_format == 3
        assert not is_named or array.metadata.dimension_names == tuple("czyx")
    # the middle of the elements that are combined
    expected = [
        ([1.0, 40.0 * z, 8.0 * y, 8.0 * x],
         [0.0, 100 + 20.0 * (z - 1), 20 + 4.0 * (y - 1), 3 + 4.0 * (x - 1)])
        for _, z, y, x in [(1, 1, 1, 1), *by]
    ]  # fmt: skip
    if "/" not in name:  # else ome-zarr-py's reader finds no levels
        assert placed(path) == expected
    assert [(level.scale, level.translation) for level in made.levels] == [
        (tuple(scale), tuple(translation)) for scale, translation in expected[1:]
    ]


@FORMATS
def test_other_metadata_is_kept(tmp_path: Path, zarr_format: Any) -> None:
    steps = [{"type": "scale", "scale": [1.0, 2.0, 2.0, 2.0]}]
    others = {"coordinateTransformations": steps, "metadata": {"method": "none"}}
    group = write(tmp_path / "a.zarr", zarr_format, others=others)
    before = group.attrs.asdict()
    n5zarr.build_pyramid(tmp_path / "a.zarr" / "0", levels=1, method="stride")
    after = zarr.open_group(tmp_path / "a.zarr", mode="r").attrs.asdict()
    changed: Any = after["ome"] if zarr_format == 3 else after
    given: Any = before["ome"] if zarr_format == 3 else before
    image, old = changed["multiscales"][0], given["multiscales"][0]
    assert image.pop("type") == "stride"
    assert image.pop("datasets")[1]["coordinateTransformations"] == [
        {"type": "scale", "scale": [1.0, 40.0, 16.0, 16.0]},
        {"type": "translation", "translation": [0.0, 100.0, 20.0, 3.0]},
    ]
    old.pop("datasets")
    assert after == before
    level = n5zarr.geometry(tmp_path / "a.zarr", "1")
    assert level.scale[1:] == (80.0, 32.0, 32.0)  # with the transform of the image
    validate_ome(tmp_path / "a.zarr")


@FORMATS
def test_the_document_is_json_for_all_programs(tmp_path: Path, zarr_format: Any) -> None:
    """zarr-python writes bare NaN, with which browsers refuse the document."""
    write(tmp_path / "a.zarr", zarr_format).attrs["fit"] = [1.5, float("nan")]
    with pytest.warns(N5Warning, match="NaN and infinities.*fit/1$") as caught:
        n5zarr.build_pyramid(tmp_path / "a.zarr", levels=1)
    assert len(caught) == 1
    name = "zarr.json" if zarr_format == 3 else ".zattrs"
    text = (tmp_path / "a.zarr" / name).read_text()
    found = json.loads(text, parse_constant=pytest.fail)
    assert found.get("attributes", found)["fit"] == [1.5, "NaN"]


@FORMATS
def test_consolidated_metadata_lists_the_levels(tmp_path: Path, zarr_format: Any) -> None:
    zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    write(tmp_path / "a.zarr", zarr_format, path="image")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)  # that v3 does not specify it
        zarr.consolidate_metadata(tmp_path / "a.zarr", zarr_format=zarr_format)
    n5zarr.build_pyramid(tmp_path / "a.zarr" / "image", levels=1)
    root: Any = zarr.open_consolidated(tmp_path / "a.zarr", mode="r")
    assert sorted(root["image"]) == ["0", "1"]


def test_shards_and_codecs_are_those_of_the_first_level(tmp_path: Path) -> None:
    from zarr.codecs import GzipCodec  # noqa: PLC0415

    write(
        tmp_path / "a.zarr", 3, chunks=(1, 3, 16, 16), shards=(1, 6, 64, 64),
        compressors=GzipCodec(level=2),
    )  # fmt: skip
    (made,) = n5zarr.build_pyramid(tmp_path / "a.zarr", levels=1, n_workers=2).levels
    array = zarr.open_array(tmp_path / "a.zarr" / "1", mode="r")
    assert (array.chunks, array.shards) == ((1, 3, 16, 16), (1, 6, 48, 48))
    assert [type(codec) for codec in array.compressors] == [GzipCodec]
    np.testing.assert_array_equal(array[...], mean(elements(), [1, 1, 2, 2]))
    assert made.n_blocks_stored == made.n_blocks


@pytest.mark.long
@pytest.mark.each_of(2)
@FORMATS
def test_small_memory_gives_the_same(tmp_path: Path, zarr_format: Any) -> None:
    for name, memory in (("a", 2**30), ("b", 2**14)):
        write(tmp_path / name, zarr_format)
        n5zarr.build_pyramid(
            tmp_path / name, levels=2, method="gaussian", max_memory=memory, n_workers=2
        )
    for level in "12":
        one, other = (zarr.open_array(tmp_path / n / level, mode="r")[...] for n in "ab")
        np.testing.assert_array_equal(one, other)


@FORMATS
def test_labels_are_never_averaged(tmp_path: Path, zarr_format: Any) -> None:
    data = elements("u1")
    write(tmp_path / "a.zarr", zarr_format, data=data, label={})
    assert n5zarr.build_pyramid(tmp_path / "a.zarr", levels=1).method == "mode"
    validate_ome(tmp_path / "a.zarr")


def test_labels_with_other_levels_are_told(tmp_path: Path) -> None:
    group = write(tmp_path / "a.zarr", 3)
    group.create_group("labels").attrs["ome"] = {"version": "0.5", "labels": ["cells"]}
    write(tmp_path / "a.zarr", 3, path="labels/cells", data=elements("u4"), label={})
    with pytest.warns(n5zarr.N5Warning, match="labels/cells: OME-Zarr expects labels .* 3 levels"):
        n5zarr.build_pyramid(tmp_path / "a.zarr", levels=2)
    n5zarr.build_pyramid(tmp_path / "a.zarr" / "labels" / "cells", levels=2)
    validate_ome(tmp_path / "a.zarr")


@FORMATS
def test_existing_levels_are_removed_only_on_request(tmp_path: Path, zarr_format: Any) -> None:
    path = tmp_path / "a.zarr"
    write(path, zarr_format)
    n5zarr.build_pyramid(path, levels=3)
    before = contents(path)
    with pytest.raises(N5UnrepresentableError, match="no levels beside 0, got 1, 2, 3; overwrite"):
        n5zarr.build_pyramid(path)
    planned = n5zarr.build_pyramid(path, levels=1, overwrite=True, dry_run=True)
    assert (planned.removed, planned.levels[0].n_blocks_stored) == (("1", "2", "3"), None)
    assert contents(path) == before
    assert n5zarr.build_pyramid(path, levels=1, overwrite=True).removed == ("1", "2", "3")
    assert sorted(zarr.open_group(path, mode="r").array_keys()) == ["0", "1"]
    validate_ome(path)


@FORMATS
def test_an_interrupted_run_is_resumed(tmp_path: Path, zarr_format: Any) -> None:
    path = tmp_path / "a.zarr"
    write(path, zarr_format)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "1-2":
            raise InterruptedError("here")

    with pytest.raises(InterruptedError, match="here"):
        n5zarr.build_pyramid(path, levels=2, progress=stop)
    validate_ome(path)  # with the first level alone
    assert len(ome_of(path)["multiscales"][0]["datasets"]) == 1
    with pytest.raises(N5UnrepresentableError, match="of an interrupted run; resume=True"):
        n5zarr.build_pyramid(path, levels=2)
    with pytest.raises(N5UnrepresentableError, match="expected the options of the run"):
        n5zarr.build_pyramid(path, levels=2, resume=True, method="stride")
    n5zarr.build_pyramid(path, levels=2, resume=True)
    validate_ome(path)
    data = mean(mean(elements(), [1, 1, 2, 2]), [1, 1, 2, 2])
    np.testing.assert_array_equal(zarr.open_array(path / "2", mode="r")[...], data)
    assert not list(path.rglob("n5zarr-incomplete.json"))
    levels = n5zarr.build_pyramid(path, levels=2, resume=True).levels
    assert [level.path for level in levels] == ["1", "2"]
    with pytest.raises(N5UnrepresentableError, match=r"expected the method of the run .*, mean"):
        n5zarr.build_pyramid(path, levels=2, resume=True, method="stride")


@FORMATS
def test_a_finished_run_is_compared_with_its_image(tmp_path: Path, zarr_format: Any) -> None:
    path = tmp_path / "a.zarr"
    write(path, zarr_format)
    n5zarr.build_pyramid(path, levels=2)
    before = contents(path)
    n5zarr.build_pyramid(path, levels=2, resume=True)
    assert contents(path) == before
    zarr.open_array(path / "2", mode="r+")[2, 10, 17, 20] = 255
    with pytest.raises(N5Error, match=r"computes, got others in (c/)?2/2/0/0; overwrite") as caught:
        n5zarr.build_pyramid(path, levels=2, resume=True)
    assert caught.value.kind == "differs"


@pytest.mark.each_of(3)
@FORMATS
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_chunks_of_the_fill_value_are_not_written(
    tmp_path: Path, zarr_format: Any, scheduler: str
) -> None:
    data = np.full(SHAPE, 7, "u2")
    data[1, 5:, 32:64, 64:] = elements()[1, 5:, 32:64, 64:]
    write(tmp_path / "a.zarr", zarr_format, data=data, fill_value=7)
    made = n5zarr.build_pyramid(tmp_path / "a.zarr", levels=2, scheduler=scheduler, n_workers=2)
    for number in (1, 2):
        data = mean(data, [1, 1, 2, 2])
        level: Any = zarr.open_array(tmp_path / "a.zarr" / str(number), mode="r")
        np.testing.assert_array_equal(level[...], data)
    assert [level.n_blocks_stored for level in made.levels] == [2, 2]
    assert [level.n_blocks for level in made.levels] == [3 * 3 * 2 * 2, 3 * 3]


def test_a_store_in_memory_gets_levels() -> None:
    store = MemoryStore()
    write(store, 3)
    n5zarr.build_pyramid(store, levels=1)
    found = zarr.open_array(store, path="1", mode="r")[...]
    np.testing.assert_array_equal(found, mean(elements(), [1, 1, 2, 2]))
    with pytest.raises(N5UnsupportedError, match="expected a store that can write"):
        n5zarr.build_pyramid(store.with_read_only(read_only=True))


def test_the_command_says_what_was_written(tmp_path: Path) -> None:
    write(tmp_path / "a.zarr", 3)
    done = CliRunner().invoke(app, ["pyramid", str(tmp_path / "a.zarr"), "--levels", "2"])
    assert done.exit_code == 0, done.output
    assert "made with mean, described as ome-zarr" in done.output
    done = CliRunner().invoke(app, ["pyramid", str(tmp_path / "a.zarr"), "--levels", "2"])
    assert done.exit_code == 2
    assert "--overwrite" in done.output


BAD: dict[str, tuple[Any, str]] = {
    "outside": (lambda i: i["datasets"][0].update(path="../0"), "expected that of an array below"),
    "missing": (lambda i: i["datasets"][0].update(path="7"), "expected the array '7', which multi"),
    "axes": (lambda i: i["axes"].pop(), "axes: expected a list of 4 axes"),
    "none": (lambda i: i.update(datasets=[]), "datasets: expected a level, got none"),
    "order": (lambda i: i["axes"].insert(3, i["axes"].pop(0)), "expected the order time, channel"),
    "mirrored": (
        lambda i: i["datasets"][0]["coordinateTransformations"][0].update(scale=[1, 1, -1, 1]),
        r"expected scales above 0, got \[1.0, 1.0, -1.0, 1.0\]; convert it to N5"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
@FORMATS
def test_wrong_metadata_is_an_error_and_stays(tmp_path: Path, zarr_format: Any, case: str) -> None:
    path = tmp_path / "a.zarr"
    write(path, zarr_format)
    function, message = BAD[case]
    change(path, lambda _, image: function(image))
    before = contents(path)
    with pytest.raises(N5Error, match=message):
        n5zarr.build_pyramid(path)
    assert contents(path) == before


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    group = write(tmp_path / "a.zarr", 3)
    for options, message in (
        ({"convention": "cosem"}, "convention: expected auto with OME-Zarr"),
        ({"chunks": [3, 4]}, "chunks: expected 4 numbers"),
        ({"factors": [2, 2]}, "factors: expected 4"),
        ({"compression": "jpeg"}, "jpeg"),
        ({"max_num_entries": 3}, r"max_num_entries .*: expected label multisets"),
        ({"overwrite": True, "resume": True}, "expected either overwrite"),
    ):
        with pytest.raises(N5Error, match=message):
            n5zarr.build_pyramid(tmp_path / "a.zarr", **options)
    group.create_group("1")
    with pytest.raises(N5UnrepresentableError, match="expected a free name, got 1, which is no"):
        n5zarr.build_pyramid(tmp_path / "a.zarr", levels=1, overwrite=True)
    with pytest.raises(N5UnrepresentableError, match="expected an image of OME-Zarr, or its first"):
        n5zarr.build_pyramid(tmp_path / "a.zarr" / "1")


def test_levels_whose_removal_was_interrupted_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    write(path, 3)
    n5zarr.build_pyramid(path, levels=2)
    change(path, lambda _, image: image["datasets"].__delitem__(slice(1, None)))
    (path / "1" / "zarr.json").unlink()
    (path / "2" / "zarr.json").unlink()
    assert n5zarr.build_pyramid(path, levels=2, overwrite=True).removed == ("1", "2")
    validate_ome(path)


def _add_group(path: Path, ome: Any, image: Any) -> None:
    zarr.open_group(path).create_group("others").create_array("kept", data=elements())
    image["datasets"].append({**image["datasets"][0], "path": "others"})


def _add_parent(path: Path, ome: Any, image: Any) -> None:
    (path / "0").rename(path / "kept")
    (path / "a").mkdir()
    (path / "kept").rename(path / "a" / "0")
    image["datasets"] = [{**image["datasets"][0], "path": each} for each in ("a/0", "a")]


def _add_files(path: Path, ome: Any, image: Any) -> None:
    (path / "1").mkdir()
    (path / "1" / "notes.txt").write_text("kept")


def _add_image(path: Path, ome: Any, image: Any) -> None:
    zarr.open_group(path).create_array("1", data=elements(), dimension_names=list("czyx"))
    first = {**image["datasets"][0], "path": "1"}
    ome["multiscales"].append({**image, "name": "another image", "datasets": [first]})


@pytest.mark.parametrize("add", [_add_group, _add_parent, _add_files, _add_image])
def test_only_levels_of_the_image_are_removed(tmp_path: Path, add: Any) -> None:
    path = tmp_path / "a.zarr"
    write(path, 3)
    change(path, partial(add, path))
    before = contents(path)
    said = r"expected (a free name|a level of|arrays that)"
    with pytest.raises(N5UnrepresentableError, match=said):
        n5zarr.build_pyramid(path, levels=2, overwrite=True)
    assert contents(path) == before


@pytest.mark.parametrize("kind", ["n5", "ome"])
def test_a_level_that_is_a_link_is_not_removed(tmp_path: Path, kind: str) -> None:
    """The documents would be those of the place that it leads to."""
    source = Path(n5zarr.sample_path()) / "em"
    root, other = tmp_path / "copy", tmp_path / "elsewhere"
    n5zarr.convert(source, root, to="n5" if kind == "n5" else "ome-zarr")
    (root / "s1").rename(other)
    (root / "s1").symlink_to(other, target_is_directory=True)
    before = sorted(other.rglob("*"))
    with pytest.raises(n5zarr.N5Error, match="expected a directory to remove, got a link"):
        n5zarr.build_pyramid(root, overwrite=True, levels=1)
    assert sorted(other.rglob("*")) == before
