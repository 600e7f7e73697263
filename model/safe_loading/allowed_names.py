"""Allow list of the globals in pickles of weights and plain data, and what each becomes. Calls of any other global are refused.
Nothing here is imported or called: the names are strings."""

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Mapping

from model.safe_loading.plan import ITEM_SIZES

TABLES = frozenset({"collections.OrderedDict", "collections.defaultdict", "collections.Counter", "builtins.dict"})
"""Become a dict of their entries."""

TENSORS = frozenset({"torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3"})
"""Become a tensor; arguments: storage, offset, shape, stride, and more."""

PARAMETERS = frozenset({"torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"})
"""Become their first argument, a tensor."""

SUBCLASS = "torch._tensor._rebuild_from_type_v2"
"""Becomes the tensor that its first argument would build from its third."""

SIZE = "torch.Size"
"""Becomes a tuple."""

_OTHER_TENSORS = "torch._utils._rebuild_"
"""Sparse, quantized, nested and other tensors: kept as inert values and listed by name."""

_HARMLESS_IN: Mapping[str, tuple[str, ...]] = {
    "_codecs": ("encode",),
    "argparse": ("Namespace",),
    "types": ("SimpleNamespace",),
    "collections": ("deque",),
    "copyreg": ("_reconstructor",),
    "builtins": ("set", "frozenset", "bytes", "bytearray", "complex", "slice", "range", "object"),
    "numpy": ("dtype",),
    "numpy.core.multiarray": ("scalar", "_reconstruct"),
    "numpy._core.multiarray": ("scalar", "_reconstruct"),
    "numpy._core.numeric": ("_frombuffer",),
    "pathlib": ("Path", "PurePath", "PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath"),
    "pathlib._local": ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath"),
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "uuid": ("UUID",),
    "torch": ("device",),
    "torch.serialization": ("_get_layout",),
}
"""Names of plain data, by module."""

_HARMLESS = frozenset(f"{module}.{name}" for module, names in _HARMLESS_IN.items() for name in names)

_STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


def is_harmless(name: str) -> bool:
    """Whether calling `name` would make plain data, which is kept as an inert value."""
    return name in _HARMLESS or name.startswith(_OTHER_TENSORS)


def modern(module: str, name: str) -> str:
    """The Python 3 name of a global: torch.save writes the names of Python 2."""
    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
    return f"{module}.{name}"


def storage_dtype(name: str) -> str | None:
    """The dtype of the storage class `name`; None for untyped bytes."""
    kind = name.rpartition(".")[2].removesuffix("Storage")
    return None if kind in ("Untyped", "_Untyped") else _STORAGES.get(kind, kind)


def item_size(dtype: str | None) -> int:
    """Bytes of one number; 1 for unsupported dtypes, whose storages are never opened."""
    return ITEM_SIZES.get(dtype or "uint8", 1)
