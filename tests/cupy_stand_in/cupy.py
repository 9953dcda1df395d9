"""A stand-in for cupy without a GPU: arrays in memory of their own, which counts what is moved.

It has what zarr's buffers of a GPU and these tests need, and refuses what cupy refuses: arrays
become numpy's only by `asnumpy` and `get`, and those of numpy only by `array`, `asarray`, `set`
and `frombuffer`. `moved` counts the bytes of these calls in both directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__version__ = "13.0"

moved = {"to device": 0, "to host": 0, "calls": 0}
_pinned: list[tuple[int, int]] = []  # begin and end of page-locked memory
pinned_copies = [0]


class ndarray:  # noqa: N801 - cupy's name
    """An array on the device."""

    __array_priority__ = 100

    def __init__(self, shape: Any = None, dtype: Any = float, *, _own: Any = None) -> None:
        self._own = np.empty(shape, dtype) if _own is None else _own

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to "
            "construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        return _wrapped(getattr(ufunc, method)(*_inside(args), **_inside(options)))

    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        return _wrapped(function(*_inside(args), **_inside(options)))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._own.__array_interface__, "version": 3}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # among them __array_interface__ and __dlpack__
            raise AttributeError(name)
        found = getattr(self._own, name)
        return _calling(found) if callable(found) else _wrapped(found)

    def __getitem__(self, key: Any) -> Any:
        return ndarray(_own=np.asarray(self._own[_key(key)]))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._own[_key(key)] = _inside(value)

    def __len__(self) -> int:
        return len(self._own)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __repr__(self) -> str:
        return repr(self._own)

    def get(self) -> np.ndarray:
        """Copy to the host."""
        moved["to host"] += self._own.nbytes
        moved["calls"] += 1
        return self._own.copy()

    def set(self, values: np.ndarray) -> None:
        """Copy from the host."""
        if not isinstance(values, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        self._own[...] = _sent(values)


def _calling(method: Any) -> Any:
    return lambda *args, **options: _wrapped(method(*_inside(args), **_inside(options)))


def _operator(name: str) -> Any:
    return lambda self, *args: _wrapped(getattr(self._own, name)(*_inside(args)))


_OPERATORS = "add radd sub rsub mul rmul truediv floordiv mod neg eq ne lt le gt ge and or invert"
for _name in _OPERATORS.split():
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
ndarray.__hash__ = None  # type: ignore[assignment]


def _inside(value: Any) -> Any:
    """Replace arrays of the device by their elements; refuse those of the host, as cupy does."""
    if isinstance(value, ndarray):
        return value._own
    if isinstance(value, tuple | list):
        return type(value)(map(_inside, value))
    if isinstance(value, dict):
        return {name: _inside(each) for name, each in value.items()}
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _key(key: Any) -> Any:
    """Replace the arrays of a key, which may be the host's: cupy moves those to the device."""
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    return _sent(key) if isinstance(key, np.ndarray) else _inside(key)


def _wrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return ndarray(_own=np.asarray(value))
    return tuple(map(_wrapped, value)) if type(value) is tuple and _has_arrays(value) else value


def _has_arrays(value: tuple[Any, ...]) -> bool:
    return any(isinstance(each, np.ndarray) for each in value)


def _sent(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "biufc":
        raise ValueError(f"Unsupported dtype {values.dtype}")
    moved["to device"] += values.nbytes
    moved["calls"] += 1
    where = values.__array_interface__["data"][0]
    pinned_copies[0] += any(begin <= where < end for begin, end in _pinned)
    return values.astype(values.dtype.newbyteorder("="), order="K", copy=True)


def array(obj: Any, dtype: Any = None, copy: Any = True, order: str = "K") -> ndarray:
    """Make an array on the device, of one there or of one of the host."""
    if isinstance(obj, ndarray):
        own = obj._own if dtype is None else obj._own.astype(dtype, copy=False)
        return ndarray(_own=own.copy(order) if copy else own)  # type: ignore[arg-type]
    return ndarray(_own=_sent(np.asarray(obj, dtype, order=order)))  # type: ignore[call-overload]


def asarray(a: Any, dtype: Any = None, order: str = "K", *, blocking: bool = False) -> ndarray:
    """Make an array on the device; without a copy if it is there."""
    del blocking
    return array(a, dtype, copy=False, order=order)


asanyarray = asarray


def asnumpy(a: Any) -> np.ndarray:
    """Copy an array to the host."""
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def frombuffer(buffer: Any, dtype: Any = float) -> ndarray:
    """Copy bytes to the device."""
    return array(np.frombuffer(buffer, dtype))


def _making(make: Any) -> Any:
    return lambda *args, **options: _wrapped(make(*_inside(args), **_inside(options)))


def __getattr__(name: str) -> Any:
    """Make numpy's other functions those of arrays on the device."""
    if name.startswith("_"):
        raise AttributeError(name)
    found = getattr(np, name)
    return found if isinstance(found, type) else _making(found)
