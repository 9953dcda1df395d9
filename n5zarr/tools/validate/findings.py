"""Define what a check finds: kinds of problems, findings, and the result of a whole check."""

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

__all__ = ["KINDS", "Finding", "KindOfFinding", "Rule", "Severity", "Validation", "finding"]

type Severity = Literal["error", "warning", "note"]
"""``error``: some reader fails or gets wrong numbers. ``warning``: probably not what was meant.
``note``: legal, but not every program reads it, or not what N5 is about."""

type Repair = Literal["clean", "quarantine"]
"""Which repair takes care of it: remove the file, or move it aside."""

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
    "misplaced-block",
    "outside-grid",
    "larger-block",
    "short-block",
    "varlength",
    "trailing-bytes",
    "leading-zero",
    "orphan-block",
    "stray-file",
    "unfinished-file",
    "lock-file",
    "incomplete",
]


class Rule(NamedTuple):
    """What a kind of finding means.

    Parameters
    ----------
    severity : {"error", "warning", "note"}
        How severe it is, unless a finding says otherwise.
    meaning : str
        What is wrong.
    way_out : str
        What to do.
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
        "`attributes.json` is no JSON: cut, empty although there are blocks, binary, or followed "
        "by something else",
        "write the document again, from a copy or another level of the pyramid",
    ),
    "not-an-object": Rule(
        "note",
        "`attributes.json` is JSON, but no object: the node is a group without attributes",
        "remove the document, or write `{}`",
    ),
    "member": Rule(
        "error",
        "a key of the dataset has a value that it cannot have, or `dimensions` and `blockSize` "
        "differ in length",
        "correct the key",
    ),
    "compression": Rule(
        "error",
        "`compression` is none that N5 has, or its members are wrong",
        "correct it; for a codec of another program, convert the dataset with that program",
    ),
    "data-type": Rule(
        "error", "`dataType` is none that N5 has", "correct it, or convert the dataset"
    ),
    "unsupported": Rule(
        "note",
        "valid N5 that is no array of numbers or text, such as `dataType` `object`, or that "
        "n5zarr cannot read",
        "`n5zarr.read_block` reads object blocks",
    ),
    "version": Rule(
        "error",
        "the root's `n5` is of a later N5 (error), or in a form that Java cannot open (warning)",
        'write three numbers in quotes, such as `"4.0.0"`',
    ),
    "foreign": Rule(
        "note", "a node of Zarr in the container, which N5 programs show as groups", "none needed"
    ),
    "unreadable": Rule(
        "error",
        "storage refuses to read it, or it is a link that leads nowhere",
        "ask for permission, check the file system, or restore what the link leads to",
    ),
    "name": Rule("warning", "a directory that no path of a node can name", "rename it"),
    "near-miss": Rule(
        "warning",
        "keys that look like those of a dataset, such as `blocksize` or `datatype`, or a group "
        "with all but one of them",
        "spell them `dimensions`, `blockSize`, `dataType`, `compression`",
    ),
    "no-block-size": Rule(
        "warning",
        "a dataset without `blockSize`: N5 up to 3 takes one block, Java N5 4 sees a group",
        "add `blockSize`",
    ),
    "axes": Rule(
        "warning",
        "attributes of axes that contradict the dataset or cannot be meant; a note where they are "
        "only unusual",
        "`n5zarr.set_geometry` writes them anew",
    ),
    "contradiction": Rule(
        "warning",
        "two conventions state different voxel sizes, so that two viewers show two sizes",
        "`n5zarr.set_geometry` writes one of them",
    ),
    "levels": Rule(
        "warning", "a group lists levels that do not exist", "write the levels, or correct the list"
    ),
    "empty-block": Rule(
        "error",
        "the file of a block has no bytes, as a writer that was stopped leaves it",
        "move it aside and write the block again: without the file, it reads as 0",
        "quarantine",
    ),
    "header": Rule(
        "error",
        "the header of a block has another mode or number of dimensions, absurd sizes, or is cut",
        "move it aside and write the block again",
        "quarantine",
    ),
    "payload": Rule(
        "error",
        "the payload of a block is cut, damaged, or of another codec",
        "move it aside and write the block again",
        "quarantine",
    ),
    "misplaced-block": Rule(
        "warning",
        "a block has the size of a block at another position, or other values than padding "
        "outside of the dataset: it was moved, or the dataset was made smaller",
        "compare it with its neighbours; `--repair-edges truncate` drops what is outside",
    ),
    "outside-grid": Rule(
        "warning",
        "a block where the dataset has none, as left by a larger dataset of the same name",
        "remove it, or correct `dimensions`: it appears when the dataset grows",
    ),
    "larger-block": Rule(
        "note",
        "a block larger than `blockSize`: Java and n5zarr crop it, tensorstore refuses it",
        "write the block again",
    ),
    "short-block": Rule(
        "note",
        "a block that ends before the dataset does, as Java saves regions; the rest reads as 0",
        "none needed",
    ),
    "varlength": Rule(
        "note",
        "a block whose number of elements is not that of its extent: no array of numbers",
        "`n5zarr.read_block` reads it",
    ),
    "trailing-bytes": Rule(
        "note",
        "bytes after the payload: Java and n5zarr ignore them, tensorstore refuses them",
        "write the block again",
    ),
    "leading-zero": Rule(
        "warning",
        "a name such as `00`, under which no program looks for a block",
        "rename it, if there is no block of the right name",
    ),
    "orphan-block": Rule(
        "warning",
        "a block in a group: the document of its dataset is missing",
        "write the document again, or remove the blocks",
    ),
    "stray-file": Rule(
        "warning",
        "a file among blocks that no program of N5 reads; a note for files in groups, and for "
        "those that other programs are known to leave",
        "remove it, if it is not needed",
    ),
    "unfinished-file": Rule(
        "warning",
        "`*.partial`: left by a writer that was killed, or a node that it was removing; never read",
        "remove it when no program is writing",
        "clean",
    ),
    "lock-file": Rule(
        "warning",
        "`*.__lock`: left by tensorstore when it was killed; never read",
        "remove it when no program is writing",
        "clean",
    ),
    "incomplete": Rule(
        "error",
        "`n5zarr-incomplete.json`: a conversion or a pyramid was interrupted here",
        "go on with `--resume`, or begin anew with `--overwrite`",
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
        See :data:`KINDS`, also for what each means and what to do.
    path : str
        Of the group or dataset, below the root of the container.
    message : str
        What was expected, what was found, and the way out.
    block : tuple of int, optional
        Position of the block in the grid, N5 order (x first).
    file : str, optional
        The file, below the root of the container.
    repair : {"clean", "quarantine"}, optional
        Which repair takes care of it: ``clean_leftovers`` or ``quarantine_blocks``.
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
        """Make a finding of what :meth:`to_json` returned."""
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


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The result of :func:`n5zarr.validate`.

    Parameters
    ----------
    container : str
        The container.
    path : str
        The node below its root from which on it was checked.
    findings : tuple of Finding
        All problems, in no particular order of blocks.
    n_groups, n_datasets, n_blocks : int
        How much was checked.
    n_bytes : int
        Size of the blocks as stored.
    seconds : float
        How long it took, without what an interrupted check had done before.
    deep : bool
        Whether every block was decoded.
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

    @property
    def ok(self) -> bool:
        """Whether there is nothing worse than a note."""
        return all(each.severity == "note" for each in self.findings)

    @cached_property
    def by_kind(self) -> Mapping[str, int]:
        """Number of findings of each kind, those of none left out."""
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
            "findings": [each.to_json() for each in self.findings],
        }
