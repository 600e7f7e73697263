"""The options that `run` and `explain` share, made of the fields of RunRequest and Decoding, and the RunRequest made of them.

Float features come from a file, for networks that have no embedding. Nothing in the file is executed.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from click.core import ParameterSource
from safetensors import SafetensorError, safe_open

from model.checkpoints.layouts.given_answers import parse_settings
from model.engine.sent_files import unreadable
from model.errors import BadSetting, MissingSetting
from model.inference import pictures, sounds
from model.requests.edits import Edit, read_edits
from model.requests.inputs import Chat, Features, Given, RandomFeatures, Turn
from model.requests.request import Decoding, OneOf, Option, RunRequest, Settings, described_fields
from model.safe_loading import images
from model.safe_loading import sounds as safe_sounds
from model.trace.types import Array

LARGEST = 2**22
"""Most numbers of features from a file."""

FORM = "FILE[:TENSOR[ROW]] with a .safetensors or .npy file, or random:POSITIONS[:SEED]"

Decorator: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]


class NamedOption(click.Option):
    """An option with an environment variable. Errors name the one that was given."""

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option or the variable, whichever gave the value."""
        name = self.name or ""
        given_by_variable = ctx is not None and ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT
        return f"the environment variable {self.envvar}" if given_by_variable else " / ".join(f"'{flag}'" for flag in self.opts)


def _kind(described: Field[Any], option: Option) -> dict[str, Any]:
    """The type of an option: one of some names, settings, edits, a number of the field's type, or else a text."""
    if isinstance(option.allowed, OneOf):
        return {"type": click.Choice(option.allowed.names)}
    if described.type == Settings:
        return {"multiple": True, "metavar": "NAME=VALUE"}
    if described.type == tuple[Edit, ...]:
        return {"multiple": True, "metavar": "EDIT"}
    if described.type == tuple[int, ...]:
        return {"metavar": "IDS"}
    return next(({"type": kind} for kind in (int, float) if described.type in (kind, kind | None)), {})


def _default(described: Field[Any], option: Option) -> dict[str, Any]:
    """The default of an option, and whether `--help` says so."""
    default = option.usual or described.default
    in_help = {} if default in (MISSING, None, ()) else {"default": default, "show_default": True}
    return in_help | ({"cls": NamedOption, "envvar": option.variable, "show_envvar": True} if option.variable else {})


def _options(described: Field[Any], option: Option) -> Mapping[str, Decorator]:
    """The click options of one field, by the names under which click hands them over: an input has one for each of its forms."""
    name, flag = described.name, f"--{(option.flag or described.name).replace('_', '-')}"
    options = {name: click.option(flag, name, help=option.help, **_kind(described, option), **_default(described, option))}
    forms = {form: help_.format(form=FORM) for form, help_ in (("ids", option.ids), ("features", option.features)) if help_}
    options |= {f"{name}_{form}": click.option(f"{flag}-{form}", help=help_) for form, help_ in forms.items()}
    if option.image:
        options[f"{name}_image"] = click.option("--image", f"{name}_image", metavar="FILE", help=option.image)
    if option.sound:
        options[f"{name}_sound"] = click.option("--sound", f"{name}_sound", metavar="FILE", help=option.sound)
    if option.turns:
        options[f"{name}_turns"] = click.option("--turn", f"{name}_turns", multiple=True, metavar="ROLE:TEXT", help=option.turns)
    return options


def _fields_of_a_run() -> Iterator[tuple[Field[Any], Option]]:
    """The fields that have an option, those of the decoding too. What describes an input (`source_valid`) comes after it."""
    # A field that is named after another one (`source_valid`) stands right behind it, wherever RunRequest has it.
    order = [field.name for field in fields(RunRequest)]
    with_option = {field.name: (field, option) for field, option in described_fields(RunRequest)}
    for name in sorted(order, key=lambda name: order.index(first if (first := name.partition("_")[0]) in order else name)):
        yield from described_fields(Decoding) if name == "decoding" else [with_option[name]] if name in with_option else []


RUN_OPTIONS = {name: click_option for field, option in _fields_of_a_run() for name, click_option in _options(field, option).items()}
SETTINGS, BEAM_SIZE = RUN_OPTIONS["settings"], RUN_OPTIONS["beam_size"]

DEVICE = click.option(
    "--device",
    cls=NamedOption,
    type=click.Choice(["auto", "cpu", "cuda", "mps"]),
    default="auto",
    envvar="HEADLIGHT_DEVICE",
    show_envvar=True,
    help="where to compute",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON object")


def asks_for_a_run(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the argument CHECKPOINT and the options of a run; the command gets a RunRequest with an empty `keep`."""

    # click hands each option over by its own name: those of a run are taken out here and made into the request.
    @functools.wraps(command)
    def with_request(checkpoint: str, **given: Any) -> None:
        described = {name: given.pop(name) for name in RUN_OPTIONS}
        command(request=_request(checkpoint, described), **given)

    described: Callable[..., None] = with_request
    for option in reversed(RUN_OPTIONS.values()):
        described = option(described)
    return click.argument("checkpoint")(described)


def _request(checkpoint: str, values: dict[str, Any]) -> RunRequest:
    """The request that the values of all options make."""
    turns = values.pop("source_turns")
    files = {f"--{kind}": file for kind in _KEPT if (file := values.pop(f"source_{kind}")) is not None}
    for name in ("source", "target"):
        values[name] = _given(name, *(values.pop(form) for form in (name, f"{name}_ids", f"{name}_features")))
    if turns and values["source"] is not None:
        raise BadSetting(name="--turn", found="beside --source", allowed="a conversation, or a source of another form")
    if turns:
        values["source"] = Chat(tuple(map(Turn.from_text, turns)))
    for flag, file in files.items():
        if values["source"] is not None:
            raise BadSetting(name=flag, found="beside another source", allowed="one source")
        values["source"] = _sent(flag.removeprefix("--"), Path(file))
    if values["source"] is None:
        raise MissingSetting(name="The source", needed="--source, --turn, --source-ids, --source-features, --image or --sound")
    decoding = Decoding(**{field.name: values.pop(field.name) for field in fields(Decoding)})
    values["settings"] = tuple(parse_settings(values["settings"]).items())
    values["begin"] = _ids("--begin", values["begin"]) if values["begin"] else ()
    values["edits"] = read_edits("; ".join(values["edits"]))
    return RunRequest(model=checkpoint, decoding=decoding, **values)


def _given(name: str, text: str | None, ids: str | None, features: str | None) -> Given | None:
    """One of the two inputs, from at most one of its options."""
    forms = [form for form in (text, ids, features) if form is not None]
    if len(forms) > 1:
        raise BadSetting(name=f"--{name}", found="several forms", allowed=f"--{name}, --{name}-ids, --{name}-features")
    if features is not None:
        return read_features(f"--{name}-features", features)
    return text if ids is None else _ids(f"--{name}-ids", ids)


_KEPT = {"image": (pictures.keep, images.MOST_BYTES), "sound": (sounds.keep, safe_sounds.MOST_BYTES)}
"""What opens a file of each kind, and the most bytes of one."""


def _sent(kind: str, path: Path) -> str:
    """The name of the image or sound in a file.

    Raises:
        PathNotFound, NotReadable, BadImage, BadSound: it cannot be read.
    """
    keep, most = _KEPT[kind]
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    return keep(data, path.name)


def _ids(name: str, text: str) -> tuple[int, ...]:
    """The ids that an option lists."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise BadSetting(name=name, found=text, allowed="whole numbers with commas between, such as 2,5,3") from error


def read_features(name: str, text: str) -> Features | RandomFeatures:
    """The features that `text` names.

    Args:
        name: the option's name, for errors.
        text: FILE, FILE:TENSOR, FILE:TENSOR[ROW] for one example of a batch, or random:POSITIONS[:SEED].

    Raises:
        BadSetting: there is no such file, tensor or row, or it is not a [position, model] array of numbers.
    """
    if drawn := re.fullmatch(r"random:([0-9]{1,6})(?::([0-9]{1,18}))?", text):
        return RandomFeatures(int(drawn[1]), int(drawn[2] or 0))
    path, tensor, row = _parts(text)
    array = _array(name, text, path, tensor)
    if array.ndim == 3:
        array = array[_row(name, text, row, len(array))]
    if array.ndim != 2 or not array.size or array.size > LARGEST or array.dtype.kind not in "fiu":
        raise BadSetting(
            name=name, found=f"{text} of shape {list(array.shape)}", allowed=f"[position, model] of at most {LARGEST:,} numbers"
        )
    return Features(tuple(map(tuple, array.astype(np.float64).tolist())))


def _parts(text: str) -> tuple[Path, str, str]:
    """File, tensor and row. File names may contain a colon."""
    if Path(text).is_file():
        return Path(text), "", ""
    path, _, rest = text.rpartition(":")
    match = re.fullmatch(r"(.*?)(?:\[([0-9]{1,6})\])?", rest)
    return Path(path), match[1] if match else rest, (match[2] or "") if match else ""


def _array(name: str, text: str, path: Path, tensor: str) -> Array:
    try:
        if path.suffix == ".npy":
            array: Array = np.load(path, allow_pickle=False, mmap_mode="r")
            return array
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
            wanted = tensor or (names[0] if len(names) == 1 else "")
            if wanted not in names:
                raise BadSetting(name=name, found=text, allowed=f"FILE:TENSOR with one of the tensors {', '.join(names[:20])}")
            stored: Array = file.get_tensor(wanted)
            return stored
    except (SafetensorError, OSError, ValueError, EOFError, TypeError) as error:
        raise BadSetting(name=name, found=text, allowed=f"{FORM} ({type(error).__name__})") from error


def _row(name: str, text: str, row: str, count: int) -> int:
    """Index of the example in a batch; optional in a batch of one."""
    if row and int(row) < count:
        return int(row)
    if not row and count == 1:
        return 0
    raise BadSetting(name=name, found=text, allowed=f"one example of the {count}: {text.partition('[')[0]}[0] and so on")
