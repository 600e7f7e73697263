"""Device, CPU threads and precision, from the HEADLIGHT_ variables."""

import os
from typing import get_args

import torch

from model.errors import BadSetting, Words, counted, phrase
from model.inference.resources import BATCH_BYTES
from model.requests.inputs import POSITIONS, PUBLIC_MEASURED, PUBLIC_POSITIONS
from model.requests.request import Precision
from model.requests.sent_text import whole_number

MOST_THREADS = 1024
MOST_BATCH = 2**20


def best_device(asked: str = "auto", name: str = "device") -> torch.device:
    """The device `asked` for: auto (CUDA, then MPS, then CPU), cpu, cuda or mps.

    Args:
        name: the setting's name, for the error.

    Raises:
        BadSetting: this machine has no such device.
    """
    # In the order of preference: `auto` takes the first that this machine has, and the last one is always there.
    devices = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked == "auto":
        return torch.device(next(name for name, ok in devices.items() if ok))
    if not devices.get(asked):
        allowed = ", ".join(["auto", *(name for name, ok in devices.items() if ok)])
        raise BadSetting(name=name, found=asked, allowed=allowed)
    return torch.device(asked)


def device() -> torch.device:
    """The device that HEADLIGHT_DEVICE names, or the best one.

    Raises:
        BadSetting: this machine has no such device.
    """
    return best_device(os.environ.get("HEADLIGHT_DEVICE") or "auto", "HEADLIGHT_DEVICE")


def device_name(device: torch.device) -> Words:
    """A device as shown on screen: "CPU · 2 threads", "CUDA · NVIDIA H200"."""
    if device.type == "cuda":
        return f"CUDA · {torch.cuda.get_device_name(device)}"
    if device.type == "mps":
        return "MPS"
    threads = torch.get_num_threads()
    return counted("CPU · {count} thread", "CPU · {count} threads", threads)


def threads() -> int | None:
    """The CPU threads that HEADLIGHT_THREADS asks for; None: it does not.

    Raises:
        BadSetting: it is not a valid number of threads.
    """
    asked = os.environ.get("HEADLIGHT_THREADS") or ""
    threads = whole_number(asked, 1, MOST_THREADS)
    if asked and threads is None:
        raise BadSetting(
            name="HEADLIGHT_THREADS", found=asked[:40], allowed=phrase("a whole number from 1 to {last}", last=MOST_THREADS)
        )
    return threads


def most_positions() -> int:
    """Most tokens of an input, even if a model has more positions; fewer on a public server (HEADLIGHT_PUBLIC)."""
    return PUBLIC_POSITIONS if os.environ.get("HEADLIGHT_PUBLIC") == "1" else POSITIONS


def most_measured() -> int:
    """Most tokens of a run about which is asked what matters: each question computes hundreds of copies of it."""
    return PUBLIC_MEASURED if os.environ.get("HEADLIGHT_PUBLIC") == "1" else POSITIONS


def batch_bytes() -> int:
    """Memory of one batch of edited copies, from HEADLIGHT_BATCH in MiB.

    Raises:
        BadSetting: it is not a valid number.
    """
    asked = os.environ.get("HEADLIGHT_BATCH") or str(BATCH_BYTES >> 20)
    if (megabytes := whole_number(asked, 1, MOST_BATCH)) is None:
        raise BadSetting(
            name="HEADLIGHT_BATCH", found=asked[:40], allowed=phrase("a whole number of MiB from 1 to {last:,}", last=MOST_BATCH)
        )
    return megabytes << 20


def precision() -> Precision | None:
    """The precision that HEADLIGHT_PRECISION names; None: each network runs in the one in which it is opened.

    Raises:
        BadSetting: there is no such precision.
    """
    if not (asked := os.environ.get("HEADLIGHT_PRECISION")):
        return None
    if asked not in get_args(Precision):
        raise BadSetting(name="HEADLIGHT_PRECISION", found=asked[:40], allowed=", ".join(get_args(Precision)))
    return asked  # type: ignore[return-value]  # one of Precision
