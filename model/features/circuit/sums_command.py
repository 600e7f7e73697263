"""`python -m model why` and `writes`: one cell of a run, and one token that it wrote, taken apart."""

from dataclasses import replace
from typing import Any, Literal

import click

from model.cli.answer import show, strongest
from model.cli.asking import engine_for
from model.cli.explain import Runs, names_a_cell
from model.cli.options import AS_JSON, DEVICE, asks_for_a_run
from model.engine.api import Run
from model.errors import BadSetting, HeadlightError
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.saved_sums import cell_to_save, sums_to_save
from model.features.circuit.score_parts import kept, score_sum
from model.features.circuit.sums import LogitSum, ScoreSum, Why, Writes
from model.requests.request import RunRequest
from model.trace.types import Site, Trace


@click.command()
@asks_for_a_run
@names_a_cell
@click.option("--minus", metavar="KEY", help="the difference from the score of this key, or from the mean of the row")
@AS_JSON
@DEVICE
def why(request: RunRequest, minus: str | None, as_json: bool, device: str, **cell: Any) -> None:
    """Takes the score of one cell of a run of CHECKPOINT apart: what wrote the query, times what wrote the key."""
    if minus not in (None, "mean") and not minus.isdecimal():
        raise BadSetting(name="--minus", found=minus, allowed="a key, counted from 0, or mean")
    other: Any = int(minus) if minus and minus.isdecimal() else minus
    with engine_for(request, device, "parts") as (engine, named):
        score = engine.ask(Why(named, **cell, minus=other))
    values = score.to_json()
    pairs = [
        (value, f"{query} × {key}")
        for query, row in zip(score.parts_query, values["matrix"], strict=True)
        for key, value in zip(score.parts_key, row, strict=True)
    ]
    # None hides a value from people: they read the sorted tables instead, and programs read the values with --json.
    hidden = dict.fromkeys(("parts_query", "parts_key"))
    tables = {"part of the query × part of the key": pairs} | {
        f"parts of the {side}": [(part["sum"], part["text"]) for part in values[f"parts_{side}"]] for side in ("query", "key")
    }
    show(values, as_json, hidden | {title: strongest(summands) for title, summands in tables.items()})


@click.command()
@asks_for_a_run
@click.option("--token", type=click.IntRange(0), required=True, help="which written token, counted from 0")
@click.option("--minus", metavar="TOKEN", help="the difference from the logit of this token: an id, a text, or runner-up")
@AS_JSON
@DEVICE
def writes(request: RunRequest, token: int, minus: str | None, as_json: bool, device: str) -> None:
    """Takes the logit of one token that a run of CHECKPOINT wrote apart: what each head and each layer added to it."""
    with engine_for(request, device, "parts") as (engine, named):
        # The tokens of the run tell which id a text after --minus means, and name the keys in the table.
        trace = kept(lambda run: engine.ask(Run(run)), named)  # the run that the question is about
        logit = engine.ask(Writes(named, token, _id(trace, token, minus)))
    values = logit.to_json()
    sources = [
        (value, f"{part['text']} from {part['strip']} {key}, {trace.tokens[part['strip']].texts[key]}")
        for part in values["parts"]
        for key, value in enumerate(part.get("keys", ()))
    ]
    tables = {
        "parts of the last state": [(part["value"], part["text"]) for part in values["parts"]],
        "heads by the token that they read": sources,
    }
    show(values, as_json, {"parts": None} | {title: strongest(summands) for title, summands in tables.items()})


def with_sums(trace: Trace, runs: Runs, request: RunRequest, site: str | None, head: int) -> Trace:
    """A trace with why the strongest cell of a head's last row has its score, and why the first token was written.

    What cannot be taken apart is left out.

    Args:
        runs: makes the run again, with everything.
        request: of the trace.
        site, head: the head; None: of the last cross-attention, or else the last site.

    Raises:
        UnknownSite, UnknownHead: the run has no such head.
    """
    attention = trace.at(Site.parse(site)) if site else trace.last_cross()
    questions: list[Why | Writes] = [Why(request, str(attention.site), head, *cell_to_save(attention, head))]
    questions += [Writes(request, 0, "runner-up")] if trace.steps else []
    # The trace may lack what a sum needs, so the run is made again with everything; if that fails, the trace is saved
    # without sums.
    try:
        runner, whole = kept(runs, request)
    except HeadlightError:
        return trace

    def answer(question: Why | Writes) -> ScoreSum | LogitSum:
        if isinstance(question, Why):
            return score_sum(runner.network, whole, question)
        return logit_sum(runner.network, whole, question)

    return replace(trace, sums=sums_to_save(questions, answer))


def _id(trace: Trace, token: int, minus: str | None) -> int | Literal["runner-up"] | None:
    """The token that `--minus` names."""
    if minus is None or minus == "runner-up":
        return minus  # type: ignore[return-value]  # one of the two
    if minus.isdecimal():
        return int(minus)
    candidates = trace.steps[token].candidates if token < len(trace.steps) else ()
    # Many tokens begin with a space, which nobody types.
    named = next((candidate.id for candidate in candidates if candidate.text.strip() == minus.strip()), None)
    if named is None and candidates:
        texts = ", ".join(candidate.text for candidate in candidates)
        raise BadSetting(name="--minus", found=minus, allowed=f"an id, runner-up, or one of {texts}")
    return named
