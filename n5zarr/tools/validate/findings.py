"""Define the results of a check: kinds of problems, findings, and the result of a whole check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from n5zarr.format.grid import block_path
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.store.info import bytes_text, counted

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
    "framing",
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
        "`attributes.json` is not valid JSON: cut off, binary, or empty beside blocks; in OME-Zarr "
        "also NaN or infinity in attributes",
        "write it again, from a copy or another level; NaN as text",
    ),
    "not-an-object": Rule(
        "note",
        "`attributes.json` is JSON, but no object: the node is a group without attributes",
        "remove it, or write `{}`",
    ),
    "member": Rule(
        "error",
        "a key has an invalid value, or `dimensions` and `blockSize` differ in length",
        "correct it",
    ),
    "compression": Rule(
        "error",
        "N5 does not have this `compression`, or its members are wrong",
        "correct it, or let its writer convert the dataset",
    ),
    "data-type": Rule("error", "N5 does not have this `dataType`", "correct or convert it"),
    "unsupported": Rule(
        "note",
        "valid, but no array, such as `dataType` `object`, or unknown to n5zarr",
        "`n5zarr.read_block` reads object blocks",
    ),
    "version": Rule(
        "error",
        "the root's `n5` names a later version; a warning if Java cannot open its form",
        'write it like `"4.0.0"`',
    ),
    "foreign": Rule("note", "a Zarr node, which N5 programs show as a group", "keep it"),
    "unreadable": Rule(
        "error",
        "storage refuses to read it, or it is a broken link",
        "ask for permission, or restore the link's target",
    ),
    "name": Rule("warning", "a directory whose name no path of a node can contain", "rename it"),
    "near-miss": Rule(
        "warning",
        "misspelt keys, such as `blocksize`, or all keys of a dataset but one",
        "the keys are `dimensions`, `blockSize`, `dataType`, `compression`",
    ),
    "no-block-size": Rule(
        "warning",
        "no `blockSize`: N5 up to version 3 reads one block, Java N5 4 a group",
        "add it",
    ),
    "axes": Rule(
        "warning",
        "axis metadata that contradict the dataset, or the finest level, or make no sense; a note "
        "if only unusual, such as mirrored",
        "rewrite them with `n5zarr.set_geometry`",
    ),
    "contradiction": Rule(
        "warning",
        "two conventions state different voxel sizes, so viewers differ",
        "write one with `n5zarr.set_geometry`",
    ),
    "levels": Rule(
        "warning",
        "a group lists missing levels, levels twice or in each other, or images that n5-universe "
        "cannot read together",
        "write the levels, correct the list, or separate the images",
    ),
    "empty-block": Rule(
        "error",
        "the file is empty, as killed writers and full disks leave it",
        "write the block again",
        "quarantine",
    ),
    "header": Rule(
        "error",
        "the header is cut off, or its mode, number of dimensions or sizes are wrong",
        "write the block again",
        "quarantine",
    ),
    "payload": Rule(
        "error",
        "the payload is cut off, damaged, or encoded with another codec",
        "write the block again",
        "quarantine",
    ),
    "shard": Rule(
        "error",
        "a shard of Java N5 4, of which others see the first block, at a wrong place; a warning if "
        "it holds one",
        "read it by the recipe",
    ),
    "shard-size": Rule(
        "error", "the size of shards, which only their files tell", "the recipe takes it"
    ),
    "misplaced-block": Rule(
        "warning",
        "the size of another position, or values other than padding outside the dataset: someone "
        "moved the block, or shrank the dataset",
        "compare it with its neighbours; `--repair-edges truncate` drops values outside",
    ),
    "outside-grid": Rule(
        "warning",
        "a block outside the dataset, of a larger one that it replaced",
        "remove it, or it appears when the dataset grows; or correct `dimensions`",
    ),
    "larger-block": Rule(
        "note",
        "larger than `blockSize`: Java and n5zarr crop it, tensorstore refuses it",
        "write the block again",
    ),
    "short-block": Rule(
        "note",
        "smaller than its part of the dataset, as Java saves a region; the rest is 0",
        "keep it",
    ),
    "varlength": Rule(
        "note",
        "the number of elements does not match the block's size: it is no part of an array",
        "`n5zarr.read_block` reads it",
    ),
    "longer-payload": Rule(
        "error",
        "more elements than the header says: n5zarr and Java read the first, perhaps wrong ones, "
        "tensorstore refuses it; a warning if the number fits no other type or extent",
        "correct `dataType` if all blocks are so, else write the block again",
    ),
    "trailing-bytes": Rule(
        "note",
        "bytes after the payload: Java and n5zarr ignore them (after gzip an error, `payload`), "
        "tensorstore refuses them",
        "write the block again",
    ),
    "framing": Rule(
        "warning",
        "blocks of lz4 in the formats of several programs, of which only n5zarr reads all",
        "write all blocks anew: `n5zarr rechunk --compression gzip`",
    ),
    "missing-blocks": Rule(
        "note",
        "blocks are missing where others are stored; an error with `--expect-complete`",
        "copy lost files from the source, unless they held only the fill value",
    ),
    "leading-zero": Rule(
        "warning",
        "a block named like `00`, which no program looks for",
        "rename it, if no block has the right name",
    ),
    "orphan-block": Rule(
        "warning",
        "a block in a group: its dataset's document is missing",
        "write the document again, or remove the blocks",
    ),
    "stray-file": Rule(
        "warning",
        "a file among blocks that no N5 program reads; a note in groups, and of known programs",
        "remove it",
    ),
    "unfinished-file": Rule(
        "warning",
        "`*.partial`: left by a killed writer",
        "remove it when no program is writing",
        "clean",
    ),
    "lock-file": Rule(
        "warning",
        "`*.__lock`: left by a killed tensorstore",
        "remove it when no program is writing",
        "clean",
    ),
    "incomplete": Rule(
        "error",
        "`n5zarr-incomplete.json`: a conversion or a pyramid was interrupted",
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


@dataclass(frozen=True, kw_only=True, repr=False)
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
        How many blocks of each dataset are stored, where this is known.
    """

    container: str
    path: str
    findings: tuple[Finding, ...]
    n_groups: int
    n_datasets: int
    n_blocks: int
    n_bytes: int
    seconds: float
    deep: bool
    block_counts: tuple[BlockCount, ...] = ()

    def __str__(self) -> str:
        found = [counted(n, severity) for severity, n in self.by_severity.items() if n]
        nodes = f"{counted(self.n_groups, 'group')}, {counted(self.n_datasets, 'dataset')}"
        how = f"of {bytes_text(self.n_bytes)} {'decoded' if self.deep else 'checked'}"
        n_blocks = self.n_blocks
        if not n_blocks and self.n_datasets:  # of OME-Zarr, unless they are decoded
            n_blocks = sum(each.n_stored for each in self.block_counts)
            how = "counted" if n_blocks else "read"
        blocks = f"{counted(n_blocks, 'block')} {how} in {self.seconds:.1f} s"
        return f"{', '.join(found) or 'no problems'}: {nodes}, {blocks}"

    def __repr__(self) -> str:
        return f"<Validation of {self.container} /{self.path}: {self}>"

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
