"""What a run is asked for on the command line: the options that `run` and `explain` have in common, made a RunRequest."""

import functools
from collections.abc import Callable
from typing import Any, get_args

import click
from click.core import ParameterSource

from model.checkpoints.layouts.given_answers import parse_settings
from model.cli.features import FORM, read_features
from model.errors import BadSetting
from model.spec.inputs import Given
from model.spec.request import Decoding, Method, Precision, RunRequest


class NamedOption(click.Option):
    """An option that an environment variable can set. An error about it names what was given, the option or the variable."""

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The source of the value at fault."""
        name = self.name or ""
        given_by_variable = ctx is not None and ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT
        return f"the environment variable {self.envvar}" if given_by_variable else " / ".join(f"'{each}'" for each in self.opts)


SETTINGS = click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="what the file does not tell; repeatable")
RUN_OPTIONS = (
    click.argument("checkpoint"),
    click.option("--source", help="the source text"),
    click.option("--source-ids", help="the source as ids, taken as given: 2,5,3"),
    click.option("--source-features", help=f"the source of a network without an embedding: {FORM}"),
    click.option("--source-valid", type=int, help="source positions that are no padding [default: those that are not the pad id]"),
    click.option("--source-pad-to", type=int, help="pad the source to this many positions"),
    click.option("--target", help="a target text to be fed instead of decoding"),
    click.option("--target-ids", help="the decoder's input as ids, start token first: 2,7"),
    click.option("--target-features", help="the target of a network without an embedding, of the same form"),
    click.option("--decode", type=click.Choice(get_args(Method)), default="greedy", help="how the target is written"),
    click.option("--max-length", type=int, default=Decoding.max_length, show_default=True, help="tokens written at most"),
    click.option(
        "--beam-size", type=int, default=Decoding.beam_size, show_default=True, help="beginnings that beam search follows"
    ),
    click.option(
        "--hypothesis",
        type=int,
        default=Decoding.hypothesis,
        show_default=True,
        help="which of beam search's to show; 0: the best",
    ),
    click.option("--temperature", type=float, default=Decoding.temperature, show_default=True, help="of sampling"),
    click.option("--top-k", type=int, default=Decoding.top_k, show_default=True, help="of sampling; 0: all"),
    click.option("--top-p", type=float, default=Decoding.top_p, show_default=True, help="of sampling; 1: all"),
    click.option("--seed", type=int, default=Decoding.seed, show_default=True, help="of sampling"),
    click.option(
        "--precision",
        cls=NamedOption,
        type=click.Choice(get_args(Precision)),
        default="float32",
        show_default=True,
        envvar="HEADLIGHT_PRECISION",
        show_envvar=True,
        help="the number type of weights and arithmetic",
    ),
    SETTINGS,
)


def asks_for_a_run(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the argument CHECKPOINT and the options that describe a run; the command gets a RunRequest that keeps nothing more."""

    @functools.wraps(command)
    def with_request(
        checkpoint: str,
        source: str | None,
        source_ids: str | None,
        source_features: str | None,
        source_valid: int | None,
        source_pad_to: int | None,
        target: str | None,
        target_ids: str | None,
        target_features: str | None,
        decode: Method,
        max_length: int,
        beam_size: int,
        hypothesis: int,
        temperature: float,
        top_k: int,
        top_p: float,
        seed: int,
        precision: Precision,
        settings: tuple[str, ...],
        **others: Any,
    ) -> None:
        read = _given("source", source, source_ids, source_features)
        if read is None:
            raise BadSetting(name="the source", found="left out", allowed="given (--source, --source-ids or --source-features)")
        request = RunRequest(
            model=checkpoint,
            source=read,
            target=_given("target", target, target_ids, target_features),
            decoding=Decoding(decode, max_length, temperature, top_k, top_p, seed, beam_size, hypothesis),
            source_valid=source_valid,
            source_pad_to=source_pad_to,
            settings=tuple(parse_settings(settings).items()),
            precision=precision,
        )
        command(request=request, **others)

    described: Callable[..., None] = with_request
    for option in reversed(RUN_OPTIONS):
        described = option(described)
    return described


def _given(name: str, text: str | None, ids: str | None, features: str | None) -> Given | None:
    """What one of the two inputs is; at most one form of it is given."""
    forms = [form for form in (text, ids, features) if form is not None]
    if len(forms) > 1:
        raise BadSetting(name=f"--{name}", found="several forms", allowed=f"one of --{name}, --{name}-ids and --{name}-features")
    if features is not None:
        return read_features(f"--{name}-features", features)
    if ids is None:
        return text
    try:
        return tuple(int(part) for part in ids.split(","))
    except ValueError as error:
        raise BadSetting(name=f"--{name}-ids", found=ids, allowed="whole numbers with commas between, such as 2,5,3") from error
