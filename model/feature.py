"""What a feature may bring to an engine and to the command line. The core imports no feature: it asks here for what all bring.

Taking a feature out is removing its folder in model/features and its name in model/features/__init__.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from model.requests.endpoints import Endpoint
from model.requests.questions import Question

Answers: TypeAlias = Mapping[type[Question[Any]], Callable[[Any, Any], Any]]
"""By the class of a question, the function that answers it, given a `model.engine.runtime.Runtime` and the question."""

TraceAnswers: TypeAlias = Mapping[type[Question[Any]], Callable[[Any, Any], Any]]
"""By the class of a question, the function that answers it from an opened trace, given the Trace and the question; None: the trace
does not hold the answer."""


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Everything that one feature brings. What needs torch is named, and imported when it is needed.

    Attributes:
        endpoints: how its questions and their answers travel between machines.
        answers: the module whose ANSWERS compute what its questions ask for; empty: it has no questions.
        traces: the module whose ANSWERS read them from an opened trace; its `check` refuses a trace that holds bad ones, and its
            SAVED has what reads each, by its name in a trace.
        saved: the function, as MODULE:NAME, that adds answers to the trace of a run before it is put into an archive.
        commands: its commands on the command line, by name: MODULE:NAME.
        edits: the function, as MODULE:NAME, that makes the edits of a request, as `model.inference.changes.changes_of` calls it.
        remote: the function, as MODULE:NAME, that opens the engine of another machine, given its address and a token.
    """

    endpoints: tuple[Endpoint, ...] = ()
    answers: str = ""
    traces: str = ""
    saved: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)
    edits: str = ""
    remote: str = ""


def listed(*folders: str) -> list[str]:
    """The names in the list of the last of some folders of features, without those that need one that is in no list."""
    lists: list[Mapping[str, tuple[str, ...]]] = [import_module(folder).FEATURES for folder in folders]
    needs = {name: {need for names in lists for need in names.get(name, ())} for names in lists for name in names}
    while missing := {name for name in needs if not needs[name] <= needs.keys()}:
        needs = {name: needs[name] for name in needs.keys() - missing}
    return [name for name in lists[-1] if name in needs]


@cache
def features() -> tuple[Feature, ...]:
    """What the features bring, in the order of model/features/__init__.py, the only list of their names."""
    return tuple(import_module(f"model.features.{name}.feature").FEATURE for name in listed("model.features"))


def answers() -> Answers:
    """The answers of all features. Importing them loads torch."""
    tables = [import_module(feature.answers).ANSWERS for feature in features() if feature.answers]
    return {question: answer for table in tables for question, answer in table.items()}


def modules_of_traces() -> list[Any]:
    """The modules of all features that read answers from opened traces."""
    return [import_module(feature.traces) for feature in features() if feature.traces]


def attribute(path: str) -> Any:
    """What MODULE:NAME names."""
    module, _colon, name = path.partition(":")
    return getattr(import_module(module), name)
