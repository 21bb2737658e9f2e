"""Look at the GPUs of this machine and run a tiny kernel on each. A program of its own: a driver that crashes takes only it along.

Prints one line of JSON: `driver` (the NVIDIA driver's version), `cuda` (the newest CUDA version that it runs, as 13.0), `reason` (why no
GPU can be used, or empty) and `devices`, each with number, name, memory_bytes, compute_capability, usable and reason. Needs nothing but
Python's library, and CuPy to find a GPU usable.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
from typing import Any

KERNEL = 'extern "C" __global__ void probe(unsigned int* out) { out[threadIdx.x] = 3 * threadIdx.x + 1; }'
NAME_BYTES = 96
OLDEST_MAJOR = 12  # version of CUDA for which there is an extra


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def _library(*names: str) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _version(number: int) -> str:
    """CUDA writes 13.0 as 13000."""
    return f"{number // 1000}.{number % 1000 // 10}"


def look() -> dict[str, Any]:
    """What the driver says of itself and of the GPUs, none of them tried yet."""
    found: dict[str, Any] = {"driver": "", "cuda": "", "reason": "", "devices": []}
    management = _library("libnvidia-ml.so.1", "nvml.dll")
    if management is None or management.nvmlInit_v2() != 0:
        found["reason"] = "no NVIDIA driver is installed" if management is None else "the NVIDIA driver does not answer"
        return found
    text, number = ctypes.create_string_buffer(NAME_BYTES), ctypes.c_int()
    if management.nvmlSystemGetDriverVersion(text, NAME_BYTES) == 0:
        found["driver"] = text.value.decode()
    if management.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(number)) == 0:
        found["cuda"] = _version(number.value)
    count = ctypes.c_uint()
    management.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for i in range(count.value):
        handle, memory, major, minor = ctypes.c_void_p(), _Memory(), ctypes.c_int(), ctypes.c_int()
        if management.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)) != 0:
            continue
        management.nvmlDeviceGetName(handle, text, NAME_BYTES)
        management.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        management.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
        found["devices"].append(_device(i, text.value.decode(), memory.total, f"{major.value}.{minor.value}"))
    if not found["devices"]:
        found["reason"] = "the NVIDIA driver sees no GPU"
    return found


def _device(number: int, name: str, memory_bytes: int, compute_capability: str) -> dict[str, Any]:
    return {
        "number": number,
        "name": name,
        "memory_bytes": int(memory_bytes),
        "compute_capability": compute_capability,
        "usable": False,
        "reason": "",
    }


def try_devices(found: dict[str, Any]) -> None:
    """Run the kernel on each GPU that CuPy sees; these may be fewer than the driver has, and in another order."""
    major = int((found["cuda"] or "99").split(".")[0])
    if major < OLDEST_MAJOR:
        found["reason"] = f"the driver {found['driver']} runs CUDA {found['cuda']}, at least {OLDEST_MAJOR}.0 is needed; update the driver"
        return
    if importlib.util.find_spec("cupy") is None:
        extra = "cuda13" if float(found["cuda"] or 0) >= 13 else "cuda12"
        found["reason"] = f"CuPy is not installed; install the extra '{extra}': pip install \"proteoscope[{extra}]\""
        return
    try:
        import cupy

        needed = _version(cupy.cuda.runtime.runtimeGetVersion())
        # Since CUDA 11 a driver runs all minor versions of its major version.
        if int(needed.split(".")[0]) > major:
            found["reason"] = (
                f"the driver {found['driver']} runs CUDA {found['cuda']}, the CuPy that is installed needs {needed}; update the driver"
                " or install the extra 'cuda12' instead"
            )
            return
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # whatever CuPy raises is the reason
        found["reason"] = f"CuPy does not work: {_one_line(error)}"
        return
    found["devices"] = [_tried(cupy, number) for number in range(count)]


def _tried(cupy: Any, number: int) -> dict[str, Any]:
    properties = cupy.cuda.runtime.getDeviceProperties(number)
    capability = f"{properties['major']}.{properties['minor']}"
    device = _device(number, properties["name"].decode(), properties["totalGlobalMem"], capability)
    try:
        with cupy.cuda.Device(number):
            values = cupy.zeros(32, cupy.uint32)
            cupy.RawModule(code=KERNEL, options=("-std=c++17",), backend="nvrtc").get_function("probe")((1,), (32,), (values,))
            right = values.get().tolist() == [3 * i + 1 for i in range(32)]
        device["usable"], device["reason"] = right, "" if right else "a test kernel gave wrong numbers"
    except Exception as error:  # whatever CuPy raises is the reason
        device["reason"] = f"a test kernel does not run: {_one_line(error)}"
    return device


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:300]}"


def main() -> None:
    """Print what is there."""
    found = look()
    if not found["reason"]:
        try_devices(found)
    for device in found["devices"]:
        if not device["usable"] and not device["reason"]:
            device["reason"] = found["reason"]
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
