"""Detection of GPUs by running a tiny kernel on each, in a separate process, since a broken driver may crash the process.

The program prints a line of JSON after each step, so that the caller sees where it crashed or hangs; the last line is the result. `driver`
is the NVIDIA driver's version, `cuda` the newest supported CUDA version, such as 13.0, `reason` why no GPU can be used, or '', and
`devices` lists number, name, memory_bytes, compute_capability, usable and reason of each GPU. `step` is the current step: "driver", "CuPy",
the number of the GPU being tested, or "done". The argument is the number of the first GPU to test, 0 by default. The program needs only the
standard library, and CuPy for the test of a GPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
from typing import Any

KERNEL = 'extern "C" __global__ void probe(unsigned int* out) { out[threadIdx.x] = 3 * threadIdx.x + 1; }'
NAME_BYTES = 96
OLDEST_MAJOR = 12  # oldest major version of CUDA with CuPy packages
PACKAGES = {12: "cupy-cuda12x nvidia-cuda-nvrtc-cu12", 13: "cupy-cuda13x nvidia-cuda-nvrtc"}


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
    """Return the CUDA version as text, such as 13.0 for 13000."""
    return f"{number // 1000}.{number % 1000 // 10}"


def look() -> dict[str, Any]:
    """Return what the driver reports about itself and all GPUs, without tests; a GPU that the driver cannot open has a reason."""
    result: dict[str, Any] = {"driver": "", "cuda": "", "reason": "", "devices": [], "step": "driver"}
    report(result)
    management = _library("libnvidia-ml.so.1", "nvml.dll")
    if management is None:
        result["reason"] = "no NVIDIA driver is installed"
        return result
    if problem := management.nvmlInit_v2():
        result["reason"] = f"the NVIDIA driver does not answer: {_driver_error(management, problem)}"
        return result
    text, number = ctypes.create_string_buffer(NAME_BYTES), ctypes.c_int()
    if management.nvmlSystemGetDriverVersion(text, NAME_BYTES) == 0:
        result["driver"] = _text(text.value)
    if management.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(number)) == 0:
        result["cuda"] = _version(number.value)
    count = ctypes.c_uint()
    management.nvmlDeviceGetCount_v2(ctypes.byref(count))
    result["devices"] = [_seen(management, i) for i in range(count.value)]
    if not result["devices"]:
        result["reason"] = "the NVIDIA driver sees no GPU"
    return result


def _seen(management: ctypes.CDLL, number: int) -> dict[str, Any]:
    """Return the description of a GPU by NVIDIA's management library."""
    device = _device(number, f"GPU {number} of the driver's list")
    handle, memory, major, minor = ctypes.c_void_p(), _Memory(), ctypes.c_int(), ctypes.c_int()
    if problem := management.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)):
        device["reason"] = f"the NVIDIA driver cannot open it: {_driver_error(management, problem)}"
        return device
    text = ctypes.create_string_buffer(NAME_BYTES)
    if management.nvmlDeviceGetName(handle, text, NAME_BYTES) == 0:
        device["name"] = _text(text.value)
    if management.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0:
        device["memory_bytes"] = int(memory.total)
    if management.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) == 0:
        device["compute_capability"] = f"{major.value}.{minor.value}"
    return device


def _driver_error(management: ctypes.CDLL, code: int) -> str:
    describe = getattr(management, "nvmlErrorString", None)
    if describe is None:
        return f"error {code}"
    describe.restype = ctypes.c_char_p
    return f"{_text(describe(code))} (error {code})"


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _device(number: int, name: str) -> dict[str, Any]:
    return {"number": number, "name": name, "memory_bytes": 0, "compute_capability": "", "usable": False, "reason": ""}


def try_devices(result: dict[str, Any], first: int = 0) -> None:
    """Run the test kernel on each GPU that CuPy reports, from `first` on; CuPy may report fewer GPUs than the driver, in another order.

    GPUs that the driver cannot open, which CuPy does not report, are listed last.
    """
    result["step"] = "CuPy"
    report(result)
    major = int((result["cuda"] or "99").split(".")[0])
    if major < OLDEST_MAJOR:
        result["reason"] = (
            f"the driver {result['driver']} runs CUDA {result['cuda']}, but at least {OLDEST_MAJOR}.0 is needed; update the driver"
        )
        return
    suitable = PACKAGES[13 if float(result["cuda"] or 0) >= 13 else 12]
    if importlib.util.find_spec("cupy") is None:
        result["reason"] = f"CuPy is not installed; to install it: pip install {suitable}"
        return
    try:
        import cupy  # optional, and slow to import: only searches on a GPU need it

        needed = _version(cupy.cuda.runtime.runtimeGetVersion())
        # Since CUDA 11, a driver supports all minor versions of its major version.
        if int(needed.split(".")[0]) > major:
            result["reason"] = (
                f"the driver {result['driver']} runs CUDA {result['cuda']}, but the installed CuPy needs {needed}; update the driver,"
                f" or uninstall this CuPy and install another: pip install {suitable}"
            )
            return
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # any exception from CuPy is the reason
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        if chosen is not None and "NoDevice" in str(error):
            result["reason"] = (
                f"CUDA shows no GPU while the environment variable CUDA_VISIBLE_DEVICES is '{chosen}'; unset it, or name a GPU"
            )
        else:
            result["reason"] = f"CuPy does not work: {_one_line(error)}"
        return
    lost = [device for device in result["devices"] if device["reason"]]
    lost = [device | {"number": number} for number, device in enumerate(lost, count)]
    devices = [_device(number, f"GPU {number} of CUDA's list") for number in range(count)]
    result["devices"] = devices + lost
    for device in devices[first:]:
        result["step"] = device["number"]
        report(result)
        try:
            _describe(cupy, device)
            report(result)
            device["usable"] = _is_right(cupy, device["number"])
            device["reason"] = "" if device["usable"] else "a test kernel gave wrong numbers"
        except Exception as error:  # any exception from CuPy is the reason
            device["reason"] = f"a test kernel does not run: {_one_line(error)}"


def _describe(cupy: Any, device: dict[str, Any]) -> None:
    properties = cupy.cuda.runtime.getDeviceProperties(device["number"])
    device["name"], device["memory_bytes"] = _text(properties["name"]), int(properties["totalGlobalMem"])
    device["compute_capability"] = f"{properties['major']}.{properties['minor']}"


def _is_right(cupy: Any, number: int) -> bool:
    """Return True if the kernel gives the expected result on a GPU."""
    with cupy.cuda.Device(number):
        values = cupy.zeros(32, cupy.uint32)
        cupy.RawModule(code=KERNEL, options=("-std=c++17",), backend="nvrtc").get_function("probe")((1,), (32,), (values,))
        return values.get().tolist() == [3 * i + 1 for i in range(32)]


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:300]}"


def report(result: dict[str, Any]) -> None:
    """Print the current result on a separate line, after any output of a library."""
    sys.stdout.write(f"\n{json.dumps(result)}\n")
    sys.stdout.flush()


def main() -> None:
    """Detect the devices and print them."""
    result = look()
    if not result["reason"]:
        try_devices(result, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for device in result["devices"]:
        if not device["usable"] and not device["reason"]:
            device["reason"] = result["reason"]
    result["step"] = "done"
    report(result)


if __name__ == "__main__":
    main()
