"""Validates every described tensor against the bytes of the file."""

from collections.abc import Mapping
from math import prod

from model.errors import DamagedFile, OverLimit, Phrase, UnreadableNumbers, UnsoundFile, phrase
from model.safe_loading import allowed_names, limits
from model.safe_loading.inert_values import Tensor
from model.safe_loading.plan import ITEM_SIZES, Described, Stored, printable

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
            raise UnreadableNumbers(
                path=self._path,
                reason=phrase(
                    "the tensor {name} is of type {dtype}; only these types are read: {allowed}",
                    name=printable(name),
                    dtype=printable(tensor.dtype),
                    allowed=", ".join(ITEM_SIZES),
                ),
            )
        capacity = self._capacity(name, tensor)
        if not _is_view(tensor):
            raise self._unsound(phrase("the shape, strides or offset of the tensor {name} is invalid", name=printable(name)))
        written_out = self._check_size(name, tensor)
        # the last number that the view reaches
        needed = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride, strict=True)) + 1
        if written_out and needed > capacity:
            raise self._unsound(
                phrase(
                    "the tensor {name} reaches beyond the {capacity:,} numbers of its storage",
                    name=printable(name),
                    capacity=capacity,
                )
            )
        return Described(tensor.storage.key, tensor.dtype, tensor.offset, tensor.shape, tensor.stride)

    def _check_name(self, name: str) -> None:
        self._count += 1
        if self._count > limits.MAX_TENSORS:
            raise OverLimit(path=self._path, reason=phrase("it has more than {most:,} tensors", most=limits.MAX_TENSORS))
        if len(name) > limits.MAX_NAME or not name.isprintable():
            raise self._unsound(phrase("the name of the tensor {name} is too long or cannot be printed", name=printable(name)))

    def _capacity(self, name: str, tensor: Tensor) -> int:
        """Numbers in the tensor's storage."""
        storage, item_size = tensor.storage, ITEM_SIZES[tensor.dtype]
        where = self._stored.get(storage.key)
        if where is None:
            raise DamagedFile(path=self._path, detail=phrase("the bytes of the tensor {name} are missing", name=printable(name)))
        if storage.count * allowed_names.item_size(storage.dtype) != where.size or where.size % item_size:
            raise DamagedFile(
                path=self._path,
                detail=phrase(
                    "the tensor {name} does not fit the {size:,} bytes of its storage", name=printable(name), size=where.size
                ),
            )
        # the same bytes as two types of numbers: no honest file has them
        if self._dtypes.setdefault(storage.key, tensor.dtype) != tensor.dtype:
            raise self._unsound(
                phrase(
                    "the bytes of the tensor {name} are also read as {dtypes}",
                    name=printable(name),
                    dtypes=self._dtypes[storage.key],
                )
            )
        return where.size // item_size

    def _check_size(self, name: str, tensor: Tensor) -> int:
        """Numbers in the tensor, checked against the file's size."""
        written_out = prod(max(1, size) for size in tensor.shape) * ITEM_SIZES[tensor.dtype]
        self._written_out += written_out
        if written_out > self._size + limits.SPARE:
            raise self._unsound(
                phrase(
                    "the tensor {name} would take {written_out:,} bytes, and the file has {size:,}",
                    name=printable(name),
                    written_out=written_out,
                    size=self._size,
                )
            )
        # tied weights share bytes; a thousand tensors that share one storage would fill the memory
        if self._written_out > limits.SHARING * self._size + limits.SPARE:
            raise self._unsound(
                phrase(
                    "its tensors would take over {sharing} times the {size:,} bytes of the file",
                    sharing=limits.SHARING,
                    size=self._size,
                )
            )
        return prod(tensor.shape)

    def _unsound(self, detail: Phrase) -> UnsoundFile:
        return UnsoundFile(path=self._path, detail=detail)


def _is_view(tensor: Tensor) -> bool:
    """Whether offset, shape and strides are valid counts, one stride for each size."""
    numbers = [tensor.offset, *tensor.shape[: limits.MAX_AXES + 1], *tensor.stride[: limits.MAX_AXES + 1]]
    counts = all(type(number) is int and 0 <= number < LARGEST for number in numbers)
    return counts and len(tensor.shape) == len(tensor.stride) <= limits.MAX_AXES
