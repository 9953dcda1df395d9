"""Flows of a container run on a dictionary, without a store, a file or a loop."""

from __future__ import annotations

import json

import numpy as np
import pytest

from n5zarr.container.container import Container
from n5zarr.container.coords_view import CoordsView
from n5zarr.container.options import ViewOptions
from n5zarr.errors import (
    N5BlockError,
    N5Error,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
)
from n5zarr.format.attributes import GroupAttributes
from n5zarr.storage.requests import Get, List, Request, Steps, Update, Work
from n5zarr.zarr_view.dataset_view import DatasetView
from tests.unit.container.answers import DATASET, EDGE_BLOCK, FULL_BLOCK, Answers, presented


@pytest.fixture
def answers() -> Answers:
    document = json.dumps(DATASET).encode()
    return Answers(
        **{"a/attributes.json": document, "a/0/0": FULL_BLOCK, "a/1/0": EDGE_BLOCK, "README": b"?"}
    )


@pytest.fixture
def container() -> Container:
    return presented()


def numbers(chunk: object) -> np.ndarray:
    assert isinstance(chunk, bytes | memoryview)
    return np.frombuffer(chunk, ">u2").reshape(2, 3)


def test_a_full_size_block_is_its_chunk_but_for_the_header(
    container: Container, answers: Answers
) -> None:
    chunk = answers(container.read("a/c/0/0"))
    np.testing.assert_array_equal(numbers(chunk), [[1, 2, 3], [4, 5, 6]])
    assert answers.count(Work) == 0


def test_a_truncated_block_is_padded_with_zeros(container: Container, answers: Answers) -> None:
    chunk = answers(container.read("a/c/0/1"))
    np.testing.assert_array_equal(numbers(chunk), [[10, 11, 0], [12, 13, 0]])


def test_a_missing_block_and_a_chunk_beyond_the_grid_are_none(
    container: Container, answers: Answers
) -> None:
    assert answers(container.read("a/c/1/0")) is None
    assert answers(container.read("a/c/2/0")) is None
    assert answers(container.read("nothing/c/0/0")) is None
    assert not answers(container.exists("a/c/1/0"))
    assert answers(container.exists("a/c/0/1"))


def test_the_document_is_read_once_until_somebody_writes_it(
    container: Container, answers: Answers
) -> None:
    key = Get("a/attributes.json")
    for _ in range(3):
        answers(container.read("a/c/0/0"))
    assert answers.asked.count(key) == 1
    larger = DATASET | {"dimensions": [5, 7]}
    answers.values["a/attributes.json"] = json.dumps(larger).encode()
    answers(container.read("a/c/0/0"))
    assert answers.asked.count(key) == 2
    view = container.memory.dataset("a")
    assert isinstance(view, DatasetView)
    assert view.shape == (7, 5)


def test_a_dataset_that_was_replaced_is_refused(container: Container, answers: Answers) -> None:
    answers(container.read("a/c/0/0"))
    other = DATASET | {"dataType": "uint8"}
    answers.values["a/attributes.json"] = json.dumps(other).encode()
    with pytest.raises(N5Error, match=r"c\.n5: a: another program has replaced") as caught:
        answers(container.read("a/c/0/0"))
    assert caught.value.kind == "changed"


def test_a_cut_block_is_read_again_when_it_is_settled(
    container: Container, answers: Answers
) -> None:
    whole = answers.values["a/0/0"]
    answers.values["a/0/0"] = whole[:-3]

    class Settling(Answers):
        def answer(self, request: Request) -> object:
            if request == Get("a/0/0", settled=True):
                self.values["a/0/0"] = whole
            return super().answer(request)

    settling = Settling(**answers.values)
    chunk = settling(container.read("a/c/0/0"))
    np.testing.assert_array_equal(numbers(chunk), [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(N5BlockError, match=r"c\.n5: a: block 0/0"):
        answers(container.read("a/c/0/0"))


def test_a_chunk_that_is_written_at_the_edge_is_truncated(
    container: Container, answers: Answers
) -> None:
    chunk = np.array([[20, 21, 99], [22, 23, 99]], ">u2")
    answers(container.write("a/c/0/1", memoryview(chunk.tobytes())))
    assert answers.values["a/1/0"] == EDGE_BLOCK[:12] + bytes.fromhex("0014 0015 0016 0017")


def test_a_key_that_is_not_of_zarr_is_not_written(container: Container, answers: Answers) -> None:
    before = dict(answers.values)
    with pytest.raises(N5UnrepresentableError, match="key 'a/README': expected a Zarr document"):
        answers(container.write("a/README", memoryview(b"?")))
    with pytest.raises(N5UnrepresentableError, match=r"chunk .* expected the chunk of an array"):
        answers(container.write("a/c/9/9", memoryview(b"?" * 12)))
    assert answers.values == before


def test_only_what_zarr_changed_is_applied_to_what_is_there_now(
    container: Container, answers: Answers
) -> None:
    served = answers(container.read("a/zarr.json"))
    assert served is not None
    document = json.loads(bytes(served))
    theirs = DATASET | {"theirs": 1}
    answers.values["a/attributes.json"] = json.dumps(theirs).encode()
    document["attributes"] = {"ours": 2}
    answers(container.write("a/zarr.json", memoryview(json.dumps(document).encode())))
    assert json.loads(answers.values["a/attributes.json"]) == theirs | {"ours": 2}
    assert answers.count(Update) == 1


def test_a_new_group_gives_a_new_container_its_version(container: Container) -> None:
    answers = Answers()
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    answers(container.write("g/zarr.json", memoryview(json.dumps(group).encode())))
    assert json.loads(answers.values["attributes.json"]) == {"n5": "4.0.0"}
    assert isinstance(container.memory.node("g"), GroupAttributes)


def test_a_document_is_written_only_where_there_is_none(
    container: Container, answers: Answers
) -> None:
    before = dict(answers.values)
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"new": 1}}
    value = memoryview(json.dumps(group).encode())
    answers(container.write("a/zarr.json", value, only_new=True))
    assert answers.values == before
    answers(container.write("g/zarr.json", value, only_new=True))
    assert json.loads(answers.values["g/attributes.json"]) == {"new": 1}


def test_removing_a_node_forgets_it(container: Container, answers: Answers) -> None:
    answers(container.read("a/c/0/0"))
    answers(container.delete_dir("a"))
    assert set(answers.values) == {"README"}
    assert container.memory.node("a") is None
    assert answers(container.read("a/c/0/0")) is None


def test_listing_names_documents_and_chunks_and_other_files_are_read_only_by_name(
    container: Container, answers: Answers
) -> None:
    assert answers(container.names("")) == ["a", "zarr.json"]
    assert [key for flow in container.keys_below("a") for key in answers(flow)] == [
        "a/zarr.json",
        "a/c/0/0",
        "a/c/0/1",
    ]
    assert answers(container.read("README")) == b"?"
    assert answers(container.read("a/attributes.json")) is None
    assert not answers(container.is_empty("a"))
    assert answers(container.is_empty("b"))


def test_the_view_with_coordinates_reads_the_same_blocks(
    container: Container, answers: Answers
) -> None:
    dataset = DATASET | {"axes": ["x", "y"], "units": ["nm", "um"], "resolution": [4, 0.5]}
    answers.values["a/attributes.json"] = json.dumps(dataset).encode()
    view = CoordsView(container)
    assert answers(view.names("")) == ["a", "zarr.json"]
    assert answers(view.names("a")) == ["a", "x", "y", "zarr.json"]
    chunk = answers(view.read("a/a/c/0/1"))
    np.testing.assert_array_equal(numbers(chunk), [[10, 11, 0], [12, 13, 0]])
    positions = answers(view.read("a/x/c/0"))
    assert positions is not None
    np.testing.assert_array_equal(np.frombuffer(positions, "<f8")[:5], [0, 4, 8, 12, 16])
    document = answers(view.read("a/y/zarr.json"))
    assert document is not None
    assert json.loads(bytes(document))["attributes"] == {"units": "um"}


def test_a_warning_is_given_once(container: Container) -> None:
    with pytest.warns(N5Warning, match=r"c\.n5: careful"):
        container.warn("careful")
    container.warn("careful")


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [("codecs", "x", "'zarr', 'n5', 'portable'"), ("zarr_format", 4, "2, 3, None"),
     ("axis_order", "c", "'C', 'F'")],
)  # fmt: skip
def test_an_unknown_option_is_refused_with_those_that_are_known(
    option: str, value: object, known: str
) -> None:
    options: dict[str, object] = {option: value}
    with pytest.raises(N5UnrepresentableError, match=f"{option}: expected one of {known}, got"):
        ViewOptions(**options)  # type: ignore[arg-type]


def test_a_listing_that_storage_cannot_do_is_no_broken_node(container: Container) -> None:
    class Unlistable(Answers):
        def answer(self, request: Request) -> object:
            if isinstance(request, List) and request.path:
                message = "listing: the server does not list"
                raise N5UnsupportedError(message, kind="listing")
            return super().answer(request)

    # only a listing tells whether BigStitcher's setups are groups
    suspect = json.dumps(DATASET | {"downsamplingFactors": [[1, 1], [2, 2]]}).encode()
    answers = Unlistable(**{"a/attributes.json": suspect})
    flows: list[Steps[object]] = [
        container.names(""), container.delete_dir("a"), container.nodes.datasets(["a"]),
        container.delete_dir("b"),
    ]  # fmt: skip
    for steps in flows:
        with pytest.raises(N5UnsupportedError, match="the server does not list"):
            answers(steps)
    assert set(answers.values) == {"a/attributes.json"}
