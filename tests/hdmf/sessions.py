"""Make an NWB session with every kind of data that NWB files hold."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from hdmf.common import DynamicTable
from hdmf.data_utils import DataChunkIterator, GenericDataChunkIterator
from pynwb import NWBHDF5IO, NWBFile, TimeSeries
from pynwb.base import Image, Images
from pynwb.behavior import Position, SpatialSeries
from pynwb.ecephys import LFP, ElectricalSeries
from pynwb.epoch import TimeIntervals
from pynwb.file import Subject
from pynwb.image import ImageSeries
from pynwb.ophys import Fluorescence, ImageSegmentation, OpticalChannel, TwoPhotonSeries

__all__ = ["START", "Buffers", "Pids", "new", "series", "session", "written"]

START = datetime(2026, 11, 21, 9, 30, 0, 123456, tzinfo=UTC)


class Buffers(GenericDataChunkIterator):  # type: ignore[misc] # hdmf has no types
    """An iterator of buffers of an array in memory, which several processes can read."""

    def __init__(self, array: np.ndarray, **options: Any) -> None:
        self._array = array
        super().__init__(**options)

    def _get_data(self, selection: tuple[slice, ...]) -> np.ndarray:
        return self._array[selection]

    def _get_maxshape(self) -> tuple[int, ...]:
        return self._array.shape

    def _get_dtype(self) -> np.dtype:
        return self._array.dtype

    def _to_dict(self) -> dict[str, Any]:
        shapes = {"chunk_shape": self.chunk_shape, "buffer_shape": self.buffer_shape}
        return {"array": self._array, **shapes}

    @staticmethod
    def _from_dict(dictionary: dict[str, Any]) -> Buffers:
        return Buffers(**dictionary)


class Pids(Buffers):
    """An iterator that yields the number of the process in place of the values."""

    def _get_data(self, selection: tuple[slice, ...]) -> np.ndarray:
        return np.full_like(super()._get_data(selection), os.getpid())

    @staticmethod
    def _from_dict(dictionary: dict[str, Any]) -> Buffers:
        return Pids(**dictionary)


def new(*series: TimeSeries) -> NWBFile:
    """Make a session of some series only."""
    file = NWBFile(session_description="x", identifier="i", session_start_time=START)
    for one in series:
        file.add_acquisition(one)
    return file


def series(name: str, data: Any, **options: Any) -> TimeSeries:
    return TimeSeries(name=name, data=data, unit="V", rate=1.0, **options)


def written(path: Path, file: NWBFile) -> Path:
    """Write a session as HDF5."""
    with NWBHDF5IO(path, mode="w") as io:
        io.write(file)
    return path


def session(identifier: str = "a session", *, seed: int = 7) -> NWBFile:
    """Make the session; equal but for the identifiers of its objects."""
    random = np.random.default_rng(seed)
    file = NWBFile(
        session_description="Every kind of data: μ, é, 漢字", identifier=identifier, notes="",
        session_start_time=START, file_create_date=START, keywords=["n5", "", "nwb"],
        experimenter=["Ramón y Cajal, Santiago", "Golgi, Camillo"],
    )  # fmt: skip
    file.subject = Subject(
        subject_id="001", species="Mus musculus", age="P90D", sex="U", weight=0.023
    )
    _electrodes(file, random)
    _planes(file, random)
    _others(file, random)
    _tables(file, random)
    return file


def _electrodes(file: NWBFile, random: np.random.Generator) -> None:
    device = file.create_device(name="probe", description="two shanks")
    groups = [
        file.create_electrode_group(
            name=f"shank{i}", description=f"shank {i}", location="CA1", device=device,
            position=(1.5 * i, -2.25, 3.0),
        )
        for i in range(2)
    ]  # fmt: skip
    file.add_electrode_column(name="label", description="of the electrode")
    file.add_electrode_column(name="good", description="whether it is")
    for i in range(5):
        file.add_electrode(
            x=0.5 * i, y=-1.5, z=float("nan"), imp=float(i) * 1e6, location="CA1", filtering="none",
            group=groups[i % 2], label=f"e{i}", good=bool(i % 2),
        )  # fmt: skip
    region = file.create_electrode_table_region([0, 2, 3], "some of them")
    raw = random.integers(-2000, 2000, (1009, 3), "int16")
    file.add_acquisition(
        ElectricalSeries(
            name="raw", data=Buffers(raw, chunk_shape=(101, 3), buffer_shape=(303, 3)),
            electrodes=region, rate=30_000.0, starting_time=0.25, conversion=1.5e-7,
        )
    )  # fmt: skip
    rows = (row.astype("float32") / 7 for row in raw[:53])
    lfp = ElectricalSeries(
        name="lfp", data=DataChunkIterator(rows, buffer_size=11), electrodes=region,
        timestamps=np.linspace(0, 1, 53),
    )  # fmt: skip
    module = file.create_processing_module("ecephys", "processed")
    module.add(LFP(electrical_series=lfp))
    file.add_unit_column(name="quality", description="in words")
    for i in range(4):  # ragged; one without spikes
        file.add_unit(
            spike_times=np.sort(random.random(i * 5)), electrodes=[i], quality="good" * i,
            electrode_group=groups[i % 2], obs_intervals=[[0.0, 1.0], [2.0, 3.5]],
            waveform_mean=random.random((7, 1)),
        )  # fmt: skip


def _planes(file: NWBFile, random: np.random.Generator) -> None:
    device = file.create_device(name="microscope")
    channel = OpticalChannel(name="green", description="GFP", emission_lambda=510.0)
    plane = file.create_imaging_plane(
        name="plane", optical_channel=channel, description="V1", device=device,
        excitation_lambda=920.0, indicator="GCaMP6f", location="V1", imaging_rate=30.0,
        grid_spacing=[0.5, 0.7], grid_spacing_unit="micrometers",
    )  # fmt: skip
    frames = random.integers(0, 4096, (23, 17, 13), "uint16")
    file.add_acquisition(
        TwoPhotonSeries(name="frames", data=frames, imaging_plane=plane, rate=30.0, unit="n.a.")
    )
    file.add_acquisition(
        ImageSeries(
            name="video", external_file=["a.avi", "b.avi"], starting_frame=[0, 100], rate=25.0,
            format="external", unit="n.a.", num_samples=150,
        )
    )  # fmt: skip
    segmentation = ImageSegmentation()
    module = file.create_processing_module("ophys", "processed")
    module.add(segmentation)
    cells = segmentation.create_plane_segmentation(
        name="cells", description="by hand", imaging_plane=plane,
        reference_images=file.acquisition["frames"],
    )  # fmt: skip
    cells.add_column("kind", "of the cell")
    for i in range(3):
        mask = [(x, 2 * x, 0.1 * x) for x in range(i + 1)]
        cells.add_roi(pixel_mask=mask, kind=["round", "", "漢"][i])
    volumes = segmentation.create_plane_segmentation(
        name="volumes", description="in depth", imaging_plane=plane
    )
    for i in range(2):
        volumes.add_roi(voxel_mask=[(1, 2, 3, 0.5), (4, 5, 6, 0.25 + i)])
    images = segmentation.create_plane_segmentation(
        name="masks", description="whole", imaging_plane=plane
    )
    for _ in range(3):
        images.add_roi(image_mask=random.random((17, 13)) < 0.1)
    rois = cells.create_roi_table_region("all", region=[0, 1, 2])
    fluorescence = Fluorescence()
    module.add(fluorescence)
    fluorescence.create_roi_response_series(
        name="traces", data=random.random((23, 3), "float32"), rois=rois, unit="lumens", rate=30.0
    )


def _others(file: NWBFile, random: np.random.Generator) -> None:
    half = random.random(31).astype("float16")
    half[3:6] = [np.nan, np.inf, -0.0]
    file.add_acquisition(
        TimeSeries(name="half", data=half, unit="V", rate=10.0, comments="float16")
    )
    clock = TimeSeries(
        name="clock", data=np.arange(29, dtype="int64") - 2**62, unit="ticks",
        timestamps=np.linspace(0, 1, 29), continuity="step",
    )  # fmt: skip
    file.add_acquisition(clock)
    file.add_stimulus(
        TimeSeries(name="linked", data=clock, timestamps=clock, unit="ticks")  # links in the file
    )
    file.add_acquisition(
        TimeSeries(name="empty", data=np.empty((0, 4), "uint8"), unit="V", rate=1.0)
    )
    for dtype in ("int8", "uint8", "uint16", "int32", "uint32", "uint64", "float64"):
        data = random.integers(0, 100, (11, 2)).astype(dtype)
        file.add_acquisition(TimeSeries(name=f"of_{dtype}", data=data, unit="n.a.", rate=2.0))
    spatial = SpatialSeries(
        name="place", data=random.random((19, 2)), rate=50.0, reference_frame="(0, 0) is the corner"
    )
    file.create_processing_module("behavior", "of the animal").add(Position(spatial_series=spatial))
    picture = Image(name="picture", data=random.random((5, 7)), resolution=1.5, description="dots")
    file.add_acquisition(Images(name="pictures", images=[picture]))


def _tables(file: NWBFile, random: np.random.Generator) -> None:
    file.add_trial_column(name="correct", description="whether")
    file.add_trial_column(name="stimulus", description="which")
    clock = file.acquisition["clock"]
    for i in range(6):
        file.add_trial(
            start_time=float(i), stop_time=i + 0.5, correct=bool(i % 3), stimulus=f"s{i}",
            timeseries=[clock], tags=["a"] * (i % 3),
        )  # fmt: skip
    epochs = TimeIntervals(name="phases", description="of the session")
    epochs.add_row(start_time=0.0, stop_time=1.0)
    file.add_time_intervals(epochs)
    table = DynamicTable(name="mixed", description="of numbers", id=[4, 2, 9])
    table.add_column("amount", "a number", data=random.integers(0, 9, 3, "uint32"))
    table.add_column("half", "a small one", data=np.array([0.5, 1.5, -2.0], "float16"))
    file.add_scratch(table)
