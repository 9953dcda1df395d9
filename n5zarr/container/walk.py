"""Walk through all nodes below a node, depth first, and request each document and listing once.

A walk reads ahead in batches, because a server answers many requests at a time: it requests the
documents of the next nodes together, whichever groups they are in, and the listings of the next
groups. So memory holds the nodes read ahead, and the names in the groups above. Nodes that a limit
or a pattern excludes are not read: the listing gives their number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice

from n5zarr.container.foreign import check_both
from n5zarr.container.memory import Node
from n5zarr.container.node_names import Broken, names_of_nodes
from n5zarr.container.nodes import Nodes
from n5zarr.errors import N5FormatError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import groups_above, join
from n5zarr.storage.requests import Entry, List, Steps
from n5zarr.storage.url import is_of_one_key

_AHEAD = 512  # nodes whose documents are requested together
_LISTINGS = 64  # groups that are listed together

_WILD = re.compile(r"[*?\[]")
_PART = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)  # a set, or one character


@dataclass(frozen=True, slots=True)
class PathPatterns:
    """Patterns of the paths of nodes below a first node, as of a shell; ``*`` matches slashes, too.

    A pattern stands for the nodes that it matches, and for all below them.

    Parameters
    ----------
    select : sequence of str, optional
        Patterns of the nodes to take; none selects all.
    exclude : sequence of str, optional
        Patterns of nodes to leave out.
    """

    select: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def wants(self, path: str) -> bool:
        """Whether a node is selected.

        Examples
        --------
        >>> patterns = PathPatterns(["em/*"], exclude=["em/s2"])
        >>> [patterns.wants(path) for path in ("em/s0", "em/s2", "labels/s0")]
        [True, False, False]
        """
        if _matches(self.exclude, path):
            return False
        return not self.select or _matches(self.select, path)

    def may_hold(self, path: str) -> bool:
        """Whether a node is selected, or nodes below it may be.

        Examples
        --------
        >>> patterns = PathPatterns(["em/s*", "raw"])
        >>> [patterns.may_hold(path) for path in ("", "em", "raw/a", "labels", "em/mask")]
        [True, True, True, False, False]
        """
        if _matches(self.exclude, path):
            return False
        return self.wants(path) or any(_reaches(each, path) for each in self.select)

    def named_in(self, group: str) -> list[str] | None:
        """Return the names of the nodes in a group that may hold selected ones, sorted.

        None if the patterns do not name them, so that the group has to be listed.

        Examples
        --------
        >>> patterns = PathPatterns(["em/s1", "em/s2", "raw"])
        >>> patterns.named_in(""), patterns.named_in("em"), patterns.named_in("raw")
        (['em', 'raw'], ['s1', 's2'], None)
        """
        if self.wants(group):
            return None
        prefix = f"{group}/" if group else ""
        names = set()
        for pattern in (each.strip("/") for each in self.select):
            if not _reaches(pattern, group):
                continue
            name = pattern.removeprefix(prefix).partition("/")[0]
            if not pattern.startswith(prefix) or _WILD.search(prefix + name):
                return None
            names.add(name)
        # a pattern such as "a//b" names nothing
        return sorted(name for name in names if name and self.may_hold(prefix + name))


def _matches(patterns: Sequence[str], path: str) -> bool:
    """Whether a pattern matches a node or one above it."""
    nodes = [*groups_above(path)[1:], path]
    return any(fnmatchcase(each, pattern.strip("/")) for each in nodes for pattern in patterns)


def _reaches(pattern: str, path: str) -> bool:
    """Whether a pattern may match nodes below a path: whether a match can begin with it."""
    parts = _PART.findall(pattern.strip("/"))
    reached = {0}  # numbers of the parts that may come next
    for char in f"{path}/" if path else "":
        for n, part in enumerate(parts):
            if n in reached and part == "*":  # which may match nothing
                reached.add(n + 1)
        stays = {n for n in reached if n < len(parts) and parts[n] == "*"}
        goes_on = {n + 1 for n in reached if n < len(parts) and fnmatchcase(char, parts[n])}
        reached = stays | (goes_on - {n + 1 for n in stays})
    return any(n < len(parts) for n in reached)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A node that storage refuses to read, for example for lack of permission."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects the nodes of a walk, below the first one.

    Parameters
    ----------
    depth : int, optional
        Number of levels below the first node; all by default.
    limit : int, optional
        Number of nodes of each group; all by default.
    pattern : str, optional
        Shell pattern for the path below the first node, matched name by name, such as
        ``"setup1*/timepoint0/s0"``. The walk includes the nodes above and below a match.
    skip : int, optional
        Number of nodes directly below the first one to skip.
    paths : PathPatterns, optional
        Nodes to visit, by their paths below the first node, with those above and below them; all by
        default. On servers, a group whose nodes the patterns name is not listed.
    limit_below : int, optional
        ``limit`` of the groups below the first node; the same by default.
    """

    depth: int | None = None
    limit: int | None = None
    pattern: str = ""
    skip: int = 0
    paths: PathPatterns | None = None
    limit_below: int | None = None
    _patterns: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        patterns = tuple(name for name in self.pattern.split("/") if name)
        object.__setattr__(self, "_patterns", patterns)

    def of(self, names: Sequence[str], level: int, group: str) -> tuple[Sequence[str], int]:
        """Select from the names in a group; also return the number that a limit excludes.

        Parameters
        ----------
        names : sequence of str
            The names.
        level : int
            Number of levels below the first node.
        group : str
            Path of the group below the first node.
        """
        if level <= len(self._patterns):
            pattern = self._patterns[level - 1]
            names = [name for name in names if fnmatchcase(name, pattern)]
        if level == 1:
            names = names[self.skip :]
        if self.paths is not None:
            names = [name for name in names if self.paths.may_hold(join(group, name))]
        limit = self.limit if level == 1 or self.limit_below is None else self.limit_below
        n_more = 0 if limit is None else max(0, len(names) - limit)
        return names[: len(names) - n_more], n_more


@dataclass(slots=True, eq=False)
class WalkNode:
    """A node of a walk; not yet read if ``is_read`` is false.

    Parameters
    ----------
    path : str
        Path in the container.
    level : int
        Number of levels below the first node.
    node : DatasetView, GroupAttributes, Broken, Unreadable or None
        The node, or None if it is missing.
    is_read : bool, optional
        Whether the node has been read.
    children : list of WalkNode, optional
        The nodes directly below a group, once it is listed.
    n_more : int, optional
        If this stands for nodes of a group that a limit excludes: their number.
    is_nested_link : bool, optional
        Whether it is a link below a link: a group there is omitted.
    """

    path: str
    level: int
    node: Node | Broken | Unreadable | None
    is_read: bool = False
    children: list[WalkNode] | None = None
    n_more: int = 0
    is_nested_link: bool = False

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rpartition("/")[2]


class Walk:
    """A walk through a node and all nodes below it.

    Parameters
    ----------
    nodes : Nodes
        The container.
    ask : callable
        Runs a flow.
    selection : Selection, optional
        The nodes to visit; all by default.
    leave_out : callable, optional
        Called with the path of each link that is not followed, and the reason.
    """

    def __init__(
        self,
        nodes: Nodes,
        ask: Callable[[Steps[None]], None],
        selection: Selection | None = None,
        leave_out: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._nodes = nodes
        self._ask = ask
        self._selection = selection or Selection()
        self._leave_out = leave_out
        self._top = ""
        self._pending: list[WalkNode] = []  # the next one last

    def run(self, path: str, node: Node | Broken) -> Iterator[tuple[WalkNode, bool]]:
        """Yield a node that has been read, and all nodes below it, depth first, sorted by name.

        Yields
        ------
        WalkNode, bool
            The node, and whether it is the last one in its group. One node with a number replaces
            those that a limit excludes.
        """
        self._top = path
        self._pending = [WalkNode(path, 0, node, is_read=True)]
        while self._pending:
            found = self._pending.pop()
            self._read(found)
            if found.node is None and not found.n_more:
                continue
            if self._needs_listing(found):
                window = islice(self._ahead(), _AHEAD - 1)
                groups = islice(filter(self._needs_listing, window), _LISTINGS - 1)
                self._ask_each(self._list, [found, *groups])
            yield found, self._is_last(found)
            self._pending += reversed(found.children or [])

    def _is_last(self, found: WalkNode) -> bool:
        """Whether no other node of the same group follows."""
        for other in reversed(self._pending):
            if other.level != found.level:
                break
            self._read(other)
            if other.node is not None or other.n_more:
                return False
        return True

    def _ahead(self) -> Iterator[WalkNode]:
        """Yield the next known nodes."""
        for found in reversed(self._pending):
            yield found
            yield from _nodes_below(found)

    def _read(self, found: WalkNode) -> None:
        """Read a node, unless it has been read, together with the next ones."""
        if not found.is_read:
            window = islice(self._ahead(), _AHEAD - 1)
            ahead = (f for f in window if not f.is_read and f is not found)
            self._ask_each(self._read_all, [found, *ahead])

    def _ask_each(
        self, flow: Callable[[Sequence[WalkNode]], Steps[None]], asked: Sequence[WalkNode]
    ) -> None:
        """Request many nodes at once; if storage refuses one of them, request fewer."""
        try:
            self._ask(flow(asked))
        except Exception as err:
            if not is_of_one_key(err):
                raise
            half = len(asked) // 2
            if half:
                self._ask_each(flow, asked[:half])
                self._ask_each(flow, asked[half:])
            else:
                asked[0].node, asked[0].is_read = Unreadable(err), True

    def _read_all(self, unread: Sequence[WalkNode]) -> Steps[None]:
        nodes = yield from self._nodes.nodes_at([found.path for found in unread])
        bare = []
        for found, node in zip(unread, nodes, strict=True):
            is_left_out = found.is_nested_link and isinstance(node, GroupAttributes)
            found.node, found.is_read = None if is_left_out else node, True
            if is_left_out:
                self._leave_out(found.path, "a group behind a link that is behind another link")
            if node is None and not found.is_nested_link:
                bare.append(found)
        # without a document, a directory with entries is a group: the listing shows both
        listings = yield [List(f.path, few=f.level == self._selection.depth) for f in bare]
        for found, entries in zip(bare, listings, strict=True):
            if entries is not None:
                found.node = yield from self._nodes.bare(found.path, entries)
                if isinstance(found.node, GroupAttributes):
                    self._set_children(found, entries)

    def _needs_listing(self, found: WalkNode) -> bool:
        is_group = isinstance(found.node, GroupAttributes)
        return is_group and found.children is None and found.level != self._selection.depth

    def _below_top(self, path: str) -> str:
        return path.removeprefix(self._top).lstrip("/")

    def _entries_named(self, group: WalkNode) -> Sequence[Entry] | None:
        """Return the nodes that patterns name in a group; None if the group has to be listed.

        In local files, where a listing costs little, it tells links from directories.
        """
        paths = self._selection.paths
        if paths is None or self._nodes.has_stamps:
            return None
        names = paths.named_in(self._below_top(group.path))
        return None if names is None else [Entry(name, is_dir=True) for name in names]

    def _list(self, groups: Sequence[WalkNode]) -> Steps[None]:
        named = {group.path: self._entries_named(group) for group in groups}
        for group in groups:
            if (entries := named[group.path]) is not None:
                self._set_children(group, entries)
        groups = [group for group in groups if named[group.path] is None]
        listings = yield [List(group.path) for group in groups]
        for group, entries in zip(groups, listings, strict=True):
            try:
                yield from check_both(group.path, entries or [])
            except N5FormatError as err:
                group.node = Broken(err.located(group.path))
            else:
                self._set_children(group, entries or [])

    def _set_children(self, group: WalkNode, entries: Sequence[Entry]) -> None:
        if group.level == self._selection.depth:
            return
        names, refused = names_of_nodes(group.path, entries)
        level = group.level + 1
        below = self._below_top(group.path)
        selected, n_more = self._selection.of(names, level, below)
        nested = {entry.name for entry in entries if entry.is_nested_link}
        dead = [entry.name for entry in entries if entry.is_dead_link]
        for name in self._selection.of(dead, level, below)[0]:
            self._leave_out(join(group.path, name), "a link to nothing")
        group.children = [
            WalkNode(join(group.path, name), level, None, is_nested_link=name in nested)
            for name in selected
        ]
        shown, n_refused = self._selection.of([name for name, _ in refused], level, below)
        group.children += [
            WalkNode(join(group.path, name), level, broken, is_read=True)
            for name, broken in refused
            if name in shown
        ]
        if n_more + n_refused:
            rest = WalkNode(group.path, level, None, is_read=True, n_more=n_more + n_refused)
            group.children.append(rest)


def _nodes_below(found: WalkNode) -> Iterator[WalkNode]:
    for child in found.children or ():
        yield child
        yield from _nodes_below(child)
