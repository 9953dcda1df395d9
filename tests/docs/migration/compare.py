"""Run each row in its library and in n5zarr, and compare the results."""

from __future__ import annotations

import builtins
import gzip
import itertools
import json
import math
import pickle
import shutil
import struct
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3
import numpy as np

from tests.docs.migration.runner import VALUES, Task
from tests.fuzz.oracle import Dataset, expected_chunk, extent_of
from tests.outputs import output
from tests.peers.environments import environment
from tests.remote.servers import s3

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.docs.migration.model import Library, Row

KEYS = ("dimensions", "blockSize", "dataType", "compression")
NUMBERS = ("float32", "float64", *(f"{u}int{8 << n}" for u in ("", "u") for n in range(4)))
RUNNER = Path(__file__).with_name("runner.py")
SERVER = "http://localhost:9000"  # stands in rows for an S3 server that has the container, too
BUCKET = "lab"
REPOSITORY = Path(__file__).parents[3]


class Found(NamedTuple):
    """The result of one side: a value or an error, and the container afterwards."""

    value: Any
    error: tuple[str, ...]
    message: str
    container: dict[str, Any]


class Verdict(NamedTuple):
    """The comparison of both sides of a row."""

    row: Row
    differing: tuple[str, ...]  # the result, documents, attributes, elements
    failures: tuple[str, ...]  # errors that the row does not name, or that it names in vain

    @property
    def text(self) -> str:
        """Return the text for the tables; none where the two are equal."""
        if not self.row.new:
            return f"no counterpart: {self.row.why}"
        return f"differs: {self.row.why}" if self.differing else ""

    @property
    def problems(self) -> list[str]:
        found = list(self.failures)
        if self.row.new and bool(self.differing) != bool(self.row.why):
            found.append(f"differs in {self.differing or 'nothing'}, and says {self.row.why!r}")
        if not self.row.new and not self.row.why:
            found.append("says no reason")
        return found


# ---------------------------------------------------------------------- the container


def write_given(folder: Path) -> None:
    """Write ``c.n5`` without any library: an image with truncated blocks, and labels."""
    root = folder / "c.n5"
    documents: dict[str, Any] = {"": {"n5": "4.0.0", "of": "a test"}, "em": {"name": "em"}}
    documents["em/s0"] = {
        "dimensions": [7, 6, 5], "blockSize": [4, 3, 2], "dataType": "uint16",
        "compression": {"type": "gzip", "level": 5, "useZlib": False},
        "resolution": [4, 4, 40], "units": ["nm", "nm", "nm"],
    }  # fmt: skip
    documents["em/mask"] = {
        "dimensions": [7, 6, 5], "blockSize": [7, 6, 5], "dataType": "uint8",
        "compression": {"type": "raw"},
    }  # fmt: skip
    for path, document in documents.items():
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path / "attributes.json").write_text(json.dumps(document))
    for x, y, z in itertools.product(range(2), range(2), range(3)):
        part = VALUES[2 * z : 2 * z + 2, 3 * y : 3 * y + 3, 4 * x : 4 * x + 4]
        if (x, y, z) != (1, 1, 2):
            write_block(root / f"em/s0/{x}/{y}/{z}", part, compress=True)
    write_block(root / "em/mask/0/0/0", (VALUES % 3 == 0).astype("u1"), compress=False)


def write_block(file: Path, part: np.ndarray, *, compress: bool) -> None:
    header = struct.pack(f">HH{part.ndim}I", 0, part.ndim, *part.shape[::-1])
    payload = part.astype(part.dtype.newbyteorder(">")).tobytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(header + (gzip.compress(payload, mtime=0) if compress else payload))


def snapshot(folder: Path, root: Path) -> dict[str, Any]:
    """Read attributes and elements of each node of a container without any library."""
    file = folder / "attributes.json"
    node = node_of(file) if file.exists() else {"attributes": {}}
    nodes = {folder.relative_to(root).as_posix(): node}
    if "documents" not in node:  # below a dataset are blocks
        for child in folder.iterdir():
            nodes |= snapshot(child, root) if child.is_dir() else {}
    return nodes


def node_of(file: Path) -> dict[str, Any]:
    document = json.loads(file.read_text())
    attributes = {k: v for k, v in document.items() if k not in (*KEYS, "n5", "zarr")}
    if not all(key in document for key in KEYS):
        return {"attributes": attributes}
    dataset = Dataset.of(document)
    stated: dict[str, Any] = {name: document[name] for name in KEYS}
    stated["compression"] = document["compression"]["type"]
    found: dict[str, Any] = {"attributes": attributes, "documents": stated}
    found["elements"] = elements_of(file.parent, dataset)
    return found


def elements_of(folder: Path, dataset: Dataset) -> Any:
    """Assemble the blocks of a dataset; return a text for what is not N5."""
    if dataset.data_type not in NUMBERS or len(dataset.dimensions) != len(dataset.block_size):
        return "no numbers of N5"
    whole = np.zeros(dataset.dimensions[::-1], dataset.data_type)
    counts = zip(dataset.dimensions, dataset.block_size, strict=True)
    for position in itertools.product(*(range(math.ceil(n / size)) for n, size in counts)):
        file = folder.joinpath(*map(str, position)) if position else folder / "0"
        if not file.exists():
            continue
        block = expected_chunk(file.read_bytes(), dataset, extent_of(dataset, position))
        if block is None:
            return "blocks that cannot be decoded"
        ends = zip(position, dataset.block_size, strict=True)
        box = tuple(slice(i * n, i * n + n) for i, n in ends)[::-1]
        whole[box] = block.values
    return whole.shape, whole.tobytes()


# ---------------------------------------------------------------------- both sides


def run(python: str, tasks: Sequence[Task], folder: Path) -> list[Found]:
    """Run tasks, and read each container afterwards."""
    roots = [Path(task.folder) / "c.n5" for task in tasks]
    results = outcomes(python, tasks, folder)
    return [
        Found(*result, snapshot(root, root)) for root, result in zip(roots, results, strict=True)
    ]


def outcomes(
    python: str, tasks: Sequence[Task], folder: Path
) -> list[tuple[Any, tuple[str, ...], str]]:
    """Run tasks in one process, each on a container of its own; return values and errors.

    An environment of its own does not see n5zarr.
    """
    folder.mkdir(parents=True)
    write_given(folder / "given")
    for task in tasks:
        shutil.copytree(folder / "given", task.folder)
    names = folder / "tasks.pickle", folder / "results.pickle"
    paths = {"PYTHONPATH": str(REPOSITORY)} if python == sys.executable else {}
    with served(folder / "given", tasks) as there:
        names[0].write_bytes(pickle.dumps([tuple(task) for task in there]))
        output(python, RUNNER, *names, env=paths)
    results: list[tuple[Any, tuple[str, ...], str]] = pickle.loads(names[1].read_bytes())
    return results


@contextmanager
def served(given: Path, tasks: Sequence[Task]) -> Iterator[Sequence[Task]]:
    """Serve the container over HTTP for tasks that name a server."""
    if not any(SERVER in task.before for task in tasks):
        yield tasks
        return
    with s3() as url:
        account = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        client: Any = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **account)
        client.create_bucket(Bucket=BUCKET, ACL="public-read")
        for file in filter(Path.is_file, given.rglob("*")):
            key = file.relative_to(given).as_posix()
            client.put_object(
                Bucket=BUCKET, Key=key, Body=file.read_bytes(), ACL="public-read-write"
            )
        yield [task._replace(before=task.before.replace(SERVER, url)) for task in tasks]


def rows_of(library: Library) -> list[tuple[Row, str, str]]:
    """Return each row with the lines that precede its two sides."""
    old, new = library.before_old, library.before_new
    return [
        (row, f"{old}\n{section.before_old}", f"{new}\n{section.before_new}")
        for section in library.sections
        for row in section.rows
    ]


def measure(libraries: Sequence[Library], folder: Path) -> dict[str, list[Verdict]]:
    """Run all rows of libraries; return the results by the names of their pages.

    The calls of n5zarr run in one process, those of the libraries in one for each environment.
    """
    tasks: dict[tuple[str, ...] | None, list[Task]] = {None: []}  # None: the side of n5zarr
    for library in libraries:
        old = tasks.setdefault(library.packages, [])
        for row, before_old, before_new in rows_of(library):
            old.append(Task(str(folder / f"old/{library.page}/{len(old)}"), before_old, row.old))
            place = str(folder / f"new/{len(tasks[None])}")
            tasks[None].append(Task(place, before_new, row.new or "None"))
    found = {
        packages: iter(run(interpreter(packages or (), folder), given, folder / f"run/{n}"))
        for n, (packages, given) in enumerate(tasks.items())
    }
    return {
        library.page: [
            judge(row, next(found[library.packages]), next(found[None]))
            for row, _, _ in rows_of(library)
        ]
        for library in libraries
    }


def interpreter(packages: tuple[str, ...], folder: Path) -> str:
    """Return the interpreter that has some packages, or that of the tests for no packages."""
    return environment(folder / "env", *packages) if packages else sys.executable


def judge(row: Row, old: Found, new: Found) -> Verdict:
    failures = []
    for side, found in (("old", old), ("new", new)):
        if bool(found.error) != (row.raises in (side, "both")):
            failures.append(f"{side}: {found.error[:1] or 'no error'} {found.message}")
    if not row.new:
        return Verdict(row, (), tuple(failures))
    differing = []
    is_caught = builtin(old) in (*new.error, "") and bool(old.error) == bool(new.error)
    if old.value != new.value or not is_caught:
        differing.append("result")
    if old.container.keys() != new.container.keys():
        differing.append("nodes")
    both = [(node, new.container[k]) for k, node in old.container.items() if k in new.container]
    parts = ("documents", "attributes", "elements")
    differing += [part for part in parts if any(a.get(part) != b.get(part) for a, b in both)]
    return Verdict(row, tuple(differing), tuple(failures))


def builtin(found: Found) -> str:
    """Return the name of the built-in error class of a library's error."""
    return next((name for name in found.error if hasattr(builtins, name)), "")
