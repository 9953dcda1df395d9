"""Define the results of a check: kinds of problems, findings, and the result of a whole check."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.lenient_json import JSON

__all__ = ["KINDS", "BlockCount", "Finding", "KindOfFinding", "Severity", "Validation", "finding"]

type Severity = Literal["error", "warning", "note"]
"""``error``: some reader fails or gets wrong numbers. ``warning``: probably not what was meant.
``note``: legal, but not every program reads it, or not what N5 is about."""

type Repair = Literal["clean", "quarantine"]  # remove the file, or move it aside

type KindOfFinding = Literal[
    "json",
    "not-an-object",
    "member",
    "compression",
    "data-type",
    "unsupported",
    "version",
    "foreign",
    "unreadable",
    "name",
    "near-miss",
    "no-block-size",
    "axes",
    "contradiction",
    "levels",
    "empty-block",
    "header",
    "payload",
    "shard",
    "shard-size",
    "misplaced-block",
    "outside-grid",
    "larger-block",
    "short-block",
    "varlength",
    "longer-payload",
    "trailing-bytes",
    "missing-blocks",
    "leading-zero",
    "orphan-block",
    "stray-file",
    "unfinished-file",
    "lock-file",
    "incomplete",
    "ome-zarr",
    "project",
]


class Rule(NamedTuple):
    """The meaning of a kind of finding.

    Parameters
    ----------
    severity : {"error", "warning", "note"}
        Severity of a finding that states no other one.
    meaning : str
        The problem.
    way_out : str
        How to solve it.
    repair : {"clean", "quarantine"} or None
        The repair that takes care of it.
    """

    severity: Severity
    meaning: str
    way_out: str
    repair: Repair | None = None


KINDS: Mapping[KindOfFinding, Rule] = {
    "json": Rule(
        "error",
        "`attributes.json` is not valid JSON: cut off, empty although blocks exist, binary, or "
        "followed by something else",
        "write the document again, from a copy or another level of the pyramid",
    ),
    "not-an-object": Rule(
        "note",
        "`attributes.json` is JSON, but not an object: the node is a group without attributes",
        "remove the document, or write `{}`",
    ),
    "member": Rule(
        "error",
        "a key of the dataset has an invalid value, or `dimensions` and `blockSize` differ in "
        "length",
        "correct the key",
    ),
    "compression": Rule(
        "error",
        "N5 does not have this `compression`, or its members are wrong",
        "correct it; for a codec of another program, convert the dataset with that program",
    ),
    "data-type": Rule(
        "error", "N5 does not have this `dataType`", "correct it, or convert the dataset"
    ),
    "unsupported": Rule(
        "note",
        "valid N5 that n5zarr cannot read, or that is not an array of numbers or text, such as "
        "`dataType` `object`",
        "`n5zarr.read_block` reads object blocks",
    ),
    "version": Rule(
        "error",
        "the root's `n5` names a later version of N5 (error), or has a form that Java cannot open "
        "(warning)",
        'write three numbers in quotes, such as `"4.0.0"`',
    ),
    "foreign": Rule(
        "note", "a Zarr node in the container; N5 programs show it as a group", "nothing"
    ),
    "unreadable": Rule(
        "error",
        "storage refuses to read it, or it is a broken link",
        "ask for permission, check the file system, or restore the target of the link",
    ),
    "name": Rule("warning", "a directory whose name no path of a node can contain", "rename it"),
    "near-miss": Rule(
        "warning",
        "misspelled keys of a dataset, such as `blocksize` or `datatype`, or a group that has all "
        "keys of a dataset except one",
        "spell them `dimensions`, `blockSize`, `dataType`, `compression`",
    ),
    "no-block-size": Rule(
        "warning",
        "a dataset without `blockSize`: N5 up to version 3 reads it as one block, Java N5 4 as a "
        "group",
        "add `blockSize`",
    ),
    "axes": Rule(
        "warning",
        "axis metadata that contradict the dataset or make no sense; a note if they are only "
        "unusual",
        "rewrite them with `n5zarr.set_geometry`",
    ),
    "contradiction": Rule(
        "warning",
        "two conventions state different voxel sizes, so viewers differ in what they show",
        "write one of them with `n5zarr.set_geometry`",
    ),
    "levels": Rule(
        "warning",
        "a group lists levels that do not exist, or images that n5-universe cannot read together",
        "write the levels, or correct the list; put each image into a group of its own",
    ),
    "empty-block": Rule(
        "error",
        "the file of a block is empty; a killed writer can leave such a file",
        "move it aside and write the block again: without the file, it reads as 0",
        "quarantine",
    ),
    "header": Rule(
        "error",
        "the header of a block is cut off, or has another mode or number of dimensions, or absurd "
        "sizes",
        "move it aside and write the block again",
        "quarantine",
    ),
    "payload": Rule(
        "error",
        "the payload of a block is cut off, damaged, or encoded with another codec",
        "move it aside and write the block again",
        "quarantine",
    ),
    "shard": Rule(
        "error",
        "a file is a shard of Java N5 4: it holds several blocks, of which other programs see the "
        "first one, at a wrong place; a warning if it holds a single block",
        "the recipe for shards of Java N5 4 in the cookbook reads the dataset, and copies it",
    ),
    "shard-size": Rule(
        "error",
        "the size of the shards of Java N5 4, as their files tell it, which the document does not",
        "the recipe takes this size",
    ),
    "misplaced-block": Rule(
        "warning",
        "a block has the size of a block at another position, or values other than padding "
        "outside the dataset: someone moved it, or shrank the dataset",
        "compare it with its neighbours; `--repair-edges truncate` drops the values outside",
    ),
    "outside-grid": Rule(
        "warning",
        "a block outside the dataset, left by a larger dataset of the same name",
        "remove it, or correct `dimensions`: it appears when the dataset grows",
    ),
    "larger-block": Rule(
        "note",
        "a block larger than `blockSize`: Java and n5zarr crop it, tensorstore refuses it",
        "write the block again",
    ),
    "short-block": Rule(
        "note",
        "a block that is smaller than its part of the dataset, because Java saved a region; the "
        "rest reads as 0",
        "nothing",
    ),
    "varlength": Rule(
        "note",
        "a block whose number of elements does not match its size: it cannot be part of an array",
        "`n5zarr.read_block` reads it",
    ),
    "longer-payload": Rule(
        "error",
        "a block with more elements than its header says: n5zarr and Java read the first ones, as "
        "wrong numbers if the block has another data type or extent; tensorstore refuses it; a "
        "warning if their number fits no other data type",
        "correct `dataType` if all blocks are so, else write the block again",
    ),
    "trailing-bytes": Rule(
        "note",
        "bytes after the payload: Java and n5zarr ignore them (after gzip they are an error of "
        "`payload`, as Java refuses them), tensorstore refuses them",
        "write the block again",
    ),
    "missing-blocks": Rule(
        "note",
        "blocks are missing, and read as the fill value, where others are stored: a few inside the "
        "box around them, or those of another level; an error if all blocks are expected "
        "(`--expect-complete`)",
        "compare with the source, and copy the files that were lost; nothing if they hold only the "
        "fill value, which many programs omit",
    ),
    "leading-zero": Rule(
        "warning",
        "a block with a name such as `00`, which no program looks for",
        "rename it, if no block has the right name",
    ),
    "orphan-block": Rule(
        "warning",
        "a block in a group: the document of its dataset is missing",
        "write the document again, or remove the blocks",
    ),
    "stray-file": Rule(
        "warning",
        "a file among blocks that no N5 program reads; a note for files in groups, and for files "
        "that other programs are known to leave",
        "remove it, if you do not need it",
    ),
    "unfinished-file": Rule(
        "warning",
        "`*.partial`: a file that a killed writer left, or a node that it was removing; never read",
        "remove it when no program is writing",
        "clean",
    ),
    "lock-file": Rule(
        "warning",
        "`*.__lock`: a file that tensorstore left when it was killed; never read",
        "remove it when no program is writing",
        "clean",
    ),
    "incomplete": Rule(
        "error",
        "`n5zarr-incomplete.json`: a conversion or a pyramid was interrupted here",
        "continue with `--resume`, or start again with `--overwrite`",
    ),
    "ome-zarr": Rule(
        "error",
        "metadata of OME-Zarr that break its specification, or do not fit the arrays",
        "correct the document of the group, or write the image again",
    ),
    "project": Rule(
        "error", "BigDataViewer or BigStitcher fails, or lacks views", "correct XML or images"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem of a container.

    Parameters
    ----------
    severity : {"error", "warning", "note"}
        See :data:`Severity`.
    kind : str
        See :data:`KINDS` for the meaning of each kind and what to do.
    path : str
        Path of the group or dataset, below the root of the container.
    message : str
        What was expected, what is stored, and what to do.
    block : tuple of int, optional
        Grid position of the block, N5 order (x first).
    file : str, optional
        The file, below the root of the container; the XML of a project.
    repair : {"clean", "quarantine"}, optional
        The repair for it: ``clean_leftovers`` or ``quarantine_blocks``.
    """

    severity: Severity
    kind: KindOfFinding
    path: str
    message: str
    block: tuple[int, ...] | None = None
    file: str | None = None
    repair: Repair | None = None

    @property
    def where(self) -> str:
        """The node, with its block or file."""
        node = self.path or "/"
        if self.block is not None:
            return f"{node}: block {block_path(N5Tuple(self.block))}"
        return f"{node}: {self.file}" if self.file else node

    @property
    def key(self) -> str | None:
        """The file of the block, or the file, below the root of the container."""
        return self.file if self.block is None else join(self.path, block_path(N5Tuple(self.block)))

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"

    def to_json(self) -> dict[str, JSON]:
        """Return all members as plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Finding:
        """Create a finding from the result of :meth:`to_json`."""
        block = members.get("block")
        return cls(**{**members, "block": None if block is None else tuple(block)})


def finding(
    kind: KindOfFinding,
    path: str,
    message: str,
    *,
    block: tuple[int, ...] | None = None,
    file: str | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Make a finding with the severity and the repair of its kind."""
    rule = KINDS[kind]
    return Finding(
        severity=severity or rule.severity,
        kind=kind,
        path=path,
        message=message,
        block=block,
        file=file,
        repair=rule.repair,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCount:
    """How many blocks of a dataset are stored.

    Parameters
    ----------
    path : str
        Path of the dataset, below the root of the container.
    n_stored, n_blocks : int
        Number of stored blocks, and of all blocks of the grid. Those that are missing read as the
        fill value. Of arrays of Zarr with shards, these are shards.
    """

    path: str
    n_stored: int
    n_blocks: int

    @property
    def is_complete(self) -> bool:
        """Whether all blocks are stored."""
        return self.n_stored >= self.n_blocks


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The result of :func:`n5zarr.validate`.

    Parameters
    ----------
    container : str
        The container.
    path : str
        The node below the root at which the check began.
    findings : tuple of Finding
        All problems, in no particular order of blocks.
    n_groups, n_datasets, n_blocks : int
        Numbers of nodes and blocks that were checked.
    n_bytes : int
        Size of the blocks as stored.
    seconds : float
        Duration of the check, without the earlier part of an interrupted check.
    deep : bool
        Whether every block was decoded.
    block_counts : tuple of BlockCount
        How many blocks of each dataset are stored; without datasets of which this is unknown: whose
        directories cannot be listed, whose files are shards of Java N5 4, and arrays of OME-Zarr
        unless all their chunks were checked or expected.
    """

    container: str
    path: str
    findings: tuple[Finding, ...] = field(repr=False)
    n_groups: int
    n_datasets: int
    n_blocks: int
    n_bytes: int
    seconds: float
    deep: bool
    block_counts: tuple[BlockCount, ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether there is nothing worse than a note."""
        return all(each.severity == "note" for each in self.findings)

    @cached_property
    def by_kind(self) -> Mapping[str, int]:
        """Number of findings of each kind that occurs."""
        return dict(sorted(Counter(each.kind for each in self.findings).items()))

    @cached_property
    def by_severity(self) -> Mapping[Severity, int]:
        """Number of findings of each severity, the worst first."""
        counts = Counter(each.severity for each in self.findings)
        return {severity: counts[severity] for severity in get_args(Severity.__value__)}

    def to_json(self) -> dict[str, JSON]:
        """Return everything as plain JSON."""
        plain = {k: v for k, v in vars(self).items() if isinstance(v, str | int | float)}
        return {
            **plain,
            "ok": self.ok,
            "by_severity": {str(k): n for k, n in self.by_severity.items()},
            "by_kind": dict(self.by_kind),
            "block_counts": [asdict(each) for each in self.block_counts],
            "findings": [each.to_json() for each in self.findings],
        }
