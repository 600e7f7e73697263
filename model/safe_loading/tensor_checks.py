"""Validates every described tensor against the bytes of the file."""

from collections.abc import Mapping
from math import prod

from model.errors import DamagedFile, OverLimit, UnreadableNumbers, UnsoundFile
from model.safe_loading import allowed_names, limits
from model.safe_loading.inert_values import Tensor
from model.safe_loading.plan import ITEM_SIZES, Described, Stored, shown

LARGEST = 2**62
"""Largest size, stride or offset."""


class Checks:
    """Validates the tensors of one file.

    Args:
        path: the file's name in errors.
        size: bytes of the file.
        stored: where the bytes of each storage are.
    """

    def __init__(self, path: str, size: int, stored: Mapping[str, Stored]) -> None:
        self._path = path
        self._size = size
        self._stored = stored
        self._count = 0
        self._written_out = 0
        self._dtypes: dict[str, str] = {}

    def described(self, name: str, tensor: Tensor) -> Described:
        """The validated tensor in plain values.

        Raises:
            UnsoundFile: its name, shape, strides or offset are invalid, or it takes more bytes than
                the file has.
            UnreadableNumbers: its dtype is not supported.
            DamagedFile: its bytes are missing or of the wrong number.
            OverLimit: there are too many tensors.
        """
        self._check_name(name)
        if tensor.dtype not in ITEM_SIZES:
            allowed_ = ", ".join(ITEM_SIZES)
            raise UnreadableNumbers(path=self._path, what=f"the tensor {shown(name)}", found=shown(tensor.dtype), allowed=allowed_)
        capacity = self._capacity(name, tensor)
        if not _is_view(tensor):
            raise self._unsound(f"the shape, strides or offset of the tensor {shown(name)} are absurd")
        written_out = self._check_size(name, tensor)
        needed = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride, strict=True)) + 1
        if written_out and needed > capacity:
            raise self._unsound(f"the tensor {shown(name)} reaches beyond the {capacity:,} numbers of its storage")
        return Described(tensor.storage.key, tensor.dtype, tensor.offset, tensor.shape, tensor.stride)

    def _check_name(self, name: str) -> None:
        self._count += 1
        if self._count > limits.MAX_TENSORS:
            most = f"{limits.MAX_TENSORS:,}"
            raise OverLimit(path=self._path, what="the number of its tensors", found=f"over {most}", allowed=most)
        if len(name) > limits.MAX_NAME or not name.isprintable():
            raise self._unsound(f"the name of the tensor {shown(name)} is too long or cannot be printed")

    def _capacity(self, name: str, tensor: Tensor) -> int:
        """Numbers in the tensor's storage."""
        storage, item_size = tensor.storage, ITEM_SIZES[tensor.dtype]
        where = self._stored.get(storage.key)
        if where is None:
            raise DamagedFile(path=self._path, detail=f"the bytes of the tensor {shown(name)} are missing")
        if storage.count * allowed_names.item_size(storage.dtype) != where.size or where.size % item_size:
            raise DamagedFile(
                path=self._path, detail=f"the tensor {shown(name)} does not fit the {where.size:,} bytes of its storage"
            )
        if self._dtypes.setdefault(storage.key, tensor.dtype) != tensor.dtype:
            raise self._unsound(f"the bytes of the tensor {shown(name)} are also read as {self._dtypes[storage.key]}")
        return where.size // item_size

    def _check_size(self, name: str, tensor: Tensor) -> int:
        """Numbers in the tensor, checked against the file's size."""
        written_out = prod(max(1, size) for size in tensor.shape) * ITEM_SIZES[tensor.dtype]
        self._written_out += written_out
        if written_out > self._size + limits.SPARE:
            raise self._unsound(f"the tensor {shown(name)} would take {written_out:,} bytes, and the file has {self._size:,}")
        if self._written_out > limits.SHARING * self._size + limits.SPARE:
            raise self._unsound(f"its tensors would take over {limits.SHARING} times the {self._size:,} bytes of the file")
        return prod(tensor.shape)

    def _unsound(self, detail: str) -> UnsoundFile:
        return UnsoundFile(path=self._path, detail=detail)


def _is_view(tensor: Tensor) -> bool:
    """Whether offset, shape and strides are valid counts, one stride for each size."""
    numbers = [tensor.offset, *tensor.shape[: limits.MAX_AXES + 1], *tensor.stride[: limits.MAX_AXES + 1]]
    counts = all(type(number) is int and 0 <= number < LARGEST for number in numbers)
    return counts and len(tensor.shape) == len(tensor.stride) <= limits.MAX_AXES
