"""Read what BigDataViewer's XML says of the datasets of a container."""

from __future__ import annotations

from n5zarr.bigdataviewer.description import Description, parse_xml, problem_of
from n5zarr.conventions.bdv import view_of
from n5zarr.conventions.model import SetupView
from n5zarr.format.path import join
from n5zarr.storage.requests import FileThatNames, Steps, Warn

_NOT_READ = "voxel sizes and positions are not those of BigDataViewer's XML beside the container"


def find_view(path: str) -> Steps[SetupView | None]:
    """Read setup and time point of a level from BigDataViewer's XML; None for other datasets."""
    names = tuple(path.split("/"))
    numbers = view_of(names)
    if numbers is None:
        return None
    description = yield from read_description("/".join(names[:-3]))
    return None if description is None else description.view(*numbers)


def read_description(path: str) -> Steps[Description | None]:
    """Read BigDataViewer's XML: in the group of the setups, or in a directory above it.

    The search ends in the directory that holds the container. If an XML beside the container is
    BigDataViewer's, but its images have a format that n5zarr does not read, it may be the one: this
    is said.

    Parameters
    ----------
    path : str
        Path of the group of the setups.
    """
    problems: list[str] = []

    def whole(data: bytes) -> str | None:
        description = parse_xml(data)
        if description is None and problem_of(data, any_loader=True) is None:
            problems.append(str(problem_of(data)))
        is_whole = description is not None and description.of_images is None
        return _container_in(description) if is_whole else None

    (xml,) = yield [FileThatNames(path, "*.xml", whole)]
    if xml is not None:
        return parse_xml(xml)
    # one that splits the images, which lacks their registrations
    (xml,) = yield [FileThatNames(path, "*.xml", lambda data: _container_in(parse_xml(data)))]
    description = None if xml is None else parse_xml(xml)
    if description is None:
        for problem in problems:
            message = f"{_NOT_READ}, as its ImageLoader has {problem}"
            yield [Warn(f"{path or '/'}: {message}")]
        return None
    return description.of_images


def _container_in(description: Description | None) -> str | None:
    return None if description is None else join(*description.loader[:2])
