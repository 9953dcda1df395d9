"""Select nodes by patterns of their paths, and tell where selected nodes may be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from n5zarr.format.path import groups_above

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PathPatterns"]

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
