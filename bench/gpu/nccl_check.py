#!/usr/bin/env python3
"""NCCL between the devices of this machine: whether it is there, whether sums are right, and how fast they are.

One process drives all devices: an all-reduce of floats that differ by device and element, checked against their sum, then timed.
Exit status 77, and a line that says why, where there is no library or one device alone.
"""

import ctypes
import glob
import sys
import sysconfig
import time

LEFT_OUT = 77
FLOAT, SUM = 7, 0  # of ncclDataType_t and ncclRedOp_t
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
CHECKED_FLOATS = 1 << 16
TIMED_BYTES = 256 << 20
REPEATS = 20


class Refused(Exception):
    pass


class Api:
    """Calls that raise where their status is not 0."""

    def __init__(self, library, prefix: str):
        self.library, self.prefix = library, prefix

    def __call__(self, name: str, *arguments) -> None:
        status = getattr(self.library, self.prefix + name)(*arguments)
        if status != 0:
            raise Refused(f"{self.prefix}{name}: status {status}")


def open_first(names: list[str]):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def device_count(cuda: Api) -> int:
    count = ctypes.c_int()
    try:
        cuda("GetDeviceCount", ctypes.byref(count))
    except Refused:
        return 0
    return count.value


class Ring:
    """A communicator, a stream and a buffer on every device."""

    def __init__(self, cuda: Api, nccl: Api, devices: int, size: int):
        self.cuda, self.nccl, self.devices = cuda, nccl, devices
        self.comms = (ctypes.c_void_p * devices)()
        nccl("CommInitAll", self.comms, devices, None)
        self.streams, self.buffers = [], []
        for device in range(devices):
            stream, buffer = ctypes.c_void_p(), ctypes.c_void_p()
            cuda("SetDevice", device)
            cuda("StreamCreate", ctypes.byref(stream))
            cuda("Malloc", ctypes.byref(buffer), ctypes.c_size_t(size))
            self.streams.append(stream)
            self.buffers.append(buffer)

    def all_reduce(self, count: int) -> None:
        self.nccl("GroupStart")
        for device in range(self.devices):
            self.nccl("AllReduce", self.buffers[device], self.buffers[device], ctypes.c_size_t(count), FLOAT, SUM,
                      ctypes.c_void_p(self.comms[device]), self.streams[device])
        self.nccl("GroupEnd")

    def wait(self) -> None:
        for device in range(self.devices):
            self.cuda("SetDevice", device)
            self.cuda("StreamSynchronize", self.streams[device])


def wrong_sums(ring: Ring) -> int:
    """Of all devices; small integers, whose sums are exact."""
    count, devices = CHECKED_FLOATS, ring.devices
    for device in range(devices):
        values = (ctypes.c_float * count)(*((device + 1) * (i % 97) for i in range(count)))
        ring.cuda("SetDevice", device)
        ring.cuda("Memcpy", ring.buffers[device], values, ctypes.c_size_t(4 * count), HOST_TO_DEVICE)
    ring.all_reduce(count)
    ring.wait()
    wrong = 0
    for device in range(devices):
        found = (ctypes.c_float * count)()
        ring.cuda("SetDevice", device)
        ring.cuda("Memcpy", found, ring.buffers[device], ctypes.c_size_t(4 * count), DEVICE_TO_HOST)
        wrong += sum(found[i] != devices * (devices + 1) // 2 * (i % 97) for i in range(count))
    return wrong


def seconds_of_one(ring: Ring, size: int) -> float:
    ring.all_reduce(size // 4)
    ring.wait()
    start = time.monotonic()
    for _ in range(REPEATS):
        ring.all_reduce(size // 4)
    ring.wait()
    return (time.monotonic() - start) / REPEATS


def check(cuda_library, nccl_library, size: int = TIMED_BYTES) -> tuple[int, str]:
    """The exit status and what to say."""
    if cuda_library is None:
        return LEFT_OUT, "the CUDA runtime is not found"
    cuda = Api(cuda_library, "cuda")
    devices = device_count(cuda)
    if devices < 2:
        return LEFT_OUT, f"{devices} device{'s' if devices != 1 else ''} here, and NCCL needs two"
    if nccl_library is None:
        return LEFT_OUT, f"{devices} devices, but libnccl.so.2 is not found"
    nccl, version = Api(nccl_library, "nccl"), ctypes.c_int()
    nccl("GetVersion", ctypes.byref(version))
    ring = Ring(cuda, nccl, devices, size)
    if wrong := wrong_sums(ring):
        return 1, f"NCCL {version.value}: {wrong} of {devices * CHECKED_FLOATS} sums over {devices} devices are wrong"
    seconds = seconds_of_one(ring, size)
    bus = size * 2 * (devices - 1) / devices / seconds
    return 0, f"NCCL {version.value}, {devices} devices: sums are right; all-reduce of {size >> 20} MiB {bus * 1e-9:.1f} GB/s on the bus"


def places_of(name: str) -> list[str]:
    """Where the loader looks, the toolkit and this Python's packages."""
    return [name, *sorted(glob.glob(f"/usr/local/cuda/lib*/{name}")), *sorted(glob.glob(f"{sysconfig.get_path('purelib')}/nvidia/*/lib/{name}"))]


def main() -> int:
    cuda = open_first([place for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so") for place in places_of(name)])
    nccl = open_first(places_of("libnccl.so.2"))
    try:
        status, said = check(cuda, nccl)
    except Refused as refused:
        status, said = 1, str(refused)
    print(said)
    return status


if __name__ == "__main__":
    sys.exit(main())
