"""Loads a weight file of any layout, or diagnoses it: layout, evidence, matched tensors, open questions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

import torch
from torch import Tensor

from model.checkpoints.diagnosis import diagnosed
from model.checkpoints.layouts import saved_settings
from model.checkpoints.layouts.base import Layout, MissingTensor, Shapes, renamed
from model.checkpoints.layouts.detect import Chosen, choose
from model.checkpoints.layouts.given_answers import GivenAnswers, TextsOf, gather_answers, texts_of_a_path
from model.checkpoints.layouts.key_mapping import DTYPES, Placement, fill, place_tensors
from model.checkpoints.layouts.layout_files import LISTED, SETTING, layout_of, listing
from model.checkpoints.layouts.questions import Answers, Question, answer_of, settle
from model.checkpoints.layouts.saved_settings import SavedAnswer
from model.checkpoints.native import Checkpoint, Info, ready
from model.errors import DoesNotFit, IncompleteWeights, OpenQuestions, Words, phrase
from model.inspection.leftovers import noted
from model.inspection.report import Asked, Inspection, TensorInfo
from model.inspection.tensor_stats import each_measured
from model.requests import network as specs
from model.requests.layout_file import parse
from model.requests.network import ModelSpec
from model.safe_loading.reader import OpenedFile, read_tensors
from model.tokenizers.subwords.tokenizer import Subwords, SubwordTokenizer
from model.tokenizers.vocabulary import ENDS, STARTS, UNKNOWNS, IdTokenizer, Specials, VocabularyTokenizer, place_of
from model.tokenizers.words import Tokenizer
from model.transformer.build import Network, build, needed


@dataclass(frozen=True)
class Diagnosis:
    """A file, its layout, and what is known so far.

    Attributes:
        path: of the file.
        chosen: its weights and their layout.
        given: settings and answers given.
        questions: questions left open by names and shapes.
        contradictions: contradicting answers in the file itself, by question.
        taken: answers taken from the file.
        problems: warnings about its numbers, a sentence each.
    """

    path: PurePath
    chosen: Chosen
    given: GivenAnswers
    questions: tuple[Question, ...]
    contradictions: Mapping[str, tuple[SavedAnswer, ...]]
    taken: Mapping[str, SavedAnswer]
    problems: tuple[Words, ...]

    @property
    def shapes(self) -> Shapes:
        """Names and shapes of the weights."""
        return self.chosen.shapes

    def answers(self) -> Answers:
        """Answers to all questions.

        Raises:
            BadSetting: one is not allowed.
            OpenQuestions: a required one is open.
        """
        return settle(self.questions, self.given.settings, str(self.path), self.chosen.layout.name)

    def spec(self, answers: Answers) -> ModelSpec:
        """The spec, its sizes checked against the limits.

        Raises:
            BadSetting: a size is beyond the limits, or answers contradict each other.
            IncompleteWeights: a tensor that tells a size is missing.
        """
        try:
            spec = self.chosen.layout.read(self.shapes, answers)
        except MissingTensor as error:
            raise IncompleteWeights(
                path=self.path, layout=self.chosen.layout.name, detail=phrase("it lacks {name}", name=error.args[0])
            ) from error
        return specs.from_json(specs.to_json(spec))

    def placement(self, spec: ModelSpec) -> Placement:
        """The key mapping of the weights."""
        rules = self.chosen.layout.rules(self.shapes, self.given.settings)
        return place_tensors(self.shapes, rules, spec, self.chosen.left_over(self.given.settings))

    def notes(self) -> tuple[Words, ...]:
        """Notes for viewers, a sentence each: on the layout, the file's settings, and unused tensors."""
        saved = saved_settings.noted(self.contradictions, self.taken)
        return (*self.chosen.layout.notes, *saved, *noted(self.chosen.left_over(self.given.settings)))

    def flaw(self, placement: Placement) -> IncompleteWeights | None:
        """Why these weights cannot be run; None: they can. Used by both `load` and `inspect`."""
        wrong = [
            *placement.misshapen.values(),
            *(phrase("no tensor in it becomes {name}", name=name) for name in placement.missing),
        ]
        wrong += [
            phrase("{name} has no place in the network that your answers describe", name=name) for name in placement.unexpected
        ]
        tensors = self.chosen.tensors
        wrong += [
            phrase("{name} holds numbers of type {dtype}, which are not read here", name=name, dtype=tensors[name].dtype)
            for name in placement.ours
            if tensors[name].dtype not in DTYPES
        ]
        return IncompleteWeights(path=self.path, layout=self.chosen.layout.name, detail=wrong[0]) if wrong else None


def diagnose(path: Path, settings: Mapping[str, str], texts_of: TextsOf = texts_of_a_path) -> Diagnosis:
    """Opens a file of any known layout. Nothing in it is executed.

    Args:
        settings: answers by name, as `--set` takes them; those of a JSON file beside the file are read too.
        texts_of: reads a vocabulary that `settings` name.

    Raises:
        CheckpointError: the file cannot be read, or its layout is unknown or ambiguous.
        BadSetting: the settings name a layout, a state dict or a file that does not exist.
    """
    return examine(read_tensors(path), path, gather_answers(path, settings, texts_of))


def examine(opened: OpenedFile, path: PurePath, given: GivenAnswers) -> Diagnosis:
    """Diagnoses an opened file, such as an upload; `path` is its name.

    Raises:
        CheckpointError, BadSetting: as for `diagnose`.
        ContradictsFile: an answer contradicts the file itself.
    """
    saved = saved_settings.saved_answers(opened.others)
    agreed = saved_settings.agreed(saved)
    known = {name: answer.value for name, answer in agreed.items()} | given.settings
    chosen = choose(opened.candidates, given.steering | known, str(path), _layouts(given))
    try:
        questions = chosen.layout.ask(chosen.shapes, known)
    except MissingTensor as error:
        raise IncompleteWeights(
            path=path, layout=chosen.layout.name, detail=phrase("it lacks {name}", name=error.args[0])
        ) from error
    # first what the user said, then what the file says, then what a vocabulary tells
    taken = dict(saved_settings.answers(agreed, questions, given.settings, str(path)))
    given = given.with_answers(taken).with_special_ids(questions)
    contradictions = {
        name: values for name, values in saved.items() if len(values) > 1 and any(name in (q.name, *q.also) for q in questions)
    }
    return Diagnosis(path, chosen, given, questions, contradictions, taken, tuple(problem.sentence for problem in opened.problems))


def _layouts(given: GivenAnswers) -> tuple[Layout, ...]:
    """The layout of a layout file, if one was given; that which lists names, if it was asked for; else none."""
    if lines := given.texts.get(SETTING):
        return (layout_of(parse("".join(lines).encode(), PurePath(given.steering[SETTING]).name)),)
    return (listing(),) if given.steering.get("layout") == LISTED else ()


def load(path: Path, settings: Mapping[str, str], device: torch.device, texts_of: TextsOf = texts_of_a_path) -> Checkpoint:
    """The network of a file, ready to run. The arguments are those of `diagnose`.

    Raises:
        CheckpointError: as for `diagnose`; or weights are missing or of other shapes.
        OpenQuestions: it leaves a question open that has no answer.
        BadSetting: an answer is not allowed.
    """
    with path.open("rb") as file:  # in chunks: it may be larger than the free memory
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return checkpoint_of(diagnose(path, settings, texts_of), digest, device)


def checkpoint_of(diagnosis: Diagnosis, digest: str, device: torch.device) -> Checkpoint:
    """The network of a diagnosed file; it computes in float32, whatever the dtype of its weights.

    Args:
        digest: SHA-256 of the file.

    Raises:
        IncompleteWeights, OpenQuestions, BadSetting: as for `load`.
    """
    path = diagnosis.path
    answers = diagnosis.answers()
    spec = diagnosis.spec(answers)
    placement = diagnosis.placement(spec)
    if flaw := diagnosis.flaw(placement):
        raise flaw
    network = _filled(diagnosis, spec, placement)
    strips = {"source": "source"} if spec.encoder is None or spec.decoder is None else {"source": "source", "target": "target"}
    info = Info(path.name, path.name, diagnosis.chosen.layout.title, strips, (), {}, spec)
    tokenizers = tokenizers_of(spec, answers, diagnosis.given.texts, diagnosis.chosen.layout)
    return Checkpoint(info, ready(network, device), tokenizers, _fingerprint(digest, diagnosis.given), diagnosis.notes())


def _filled(diagnosis: Diagnosis, spec: ModelSpec, placement: Placement) -> Network:
    network = build(spec)
    fill(network, diagnosis.chosen.tensors, placement)
    return network


def _fingerprint(digest: str, given: GivenAnswers) -> str:
    """SHA-256 over everything that determines what the network computes."""
    # other answers make another network of the same file
    decides = [digest, sorted((given.steering | given.settings).items()), sorted(given.texts.items())]
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()


def inspect(path: Path, settings: Mapping[str, str], texts_of: TextsOf = texts_of_a_path) -> Inspection:
    """The inspection report of a file, with open questions, without running it. The arguments are those of `diagnose`.

    Raises:
        CheckpointError: as for `diagnose`.
        BadSetting: an answer is not allowed.
    """
    return inspection_of(diagnose(path, settings, texts_of))


def inspection_of(diagnosis: Diagnosis) -> Inspection:
    """A diagnosis as an inspection report; open questions are listed, not raised.

    Raises:
        IncompleteWeights: a tensor that tells a size is missing.
        BadSetting: an answer is not allowed, or a vocabulary has another length than the embedding.
    """
    layout, settings = diagnosis.chosen.layout, diagnosis.given.settings
    names = renamed(diagnosis.shapes, layout.rules(diagnosis.shapes, settings))
    left_over = diagnosis.chosen.left_over(settings)
    try:
        answers = diagnosis.answers()
        spec = diagnosis.spec(answers)
        # everything that `load` would refuse is told here, too
        tokenizers_of(spec, answers, diagnosis.given.texts, layout)  # a vocabulary of another length is refused before it is used
    except OpenQuestions:
        # a report with open questions still names every tensor
        placement, flaw, spec_json, parameters, network = None, None, {}, 0, None
    else:
        placement, spec_json = diagnosis.placement(spec), specs.to_json(spec)
        parameters = sum(parameter.numel() for parameter in needed(spec).parameters())
        flaw = diagnosis.flaw(placement)
        network = None if flaw else _filled(diagnosis, spec, placement)
    described = {
        name: _describe(name, tensor, names.get(name), name in left_over, placement)
        for name, tensor in diagnosis.chosen.tensors.items()
    }
    inspection = Inspection(
        what=phrase("{name}: {title}.", name=diagnosis.path.name, title=layout.title),
        spec=spec_json,
        parameters=parameters,
        tensors=tuple(each_measured(described, diagnosis.chosen.tensors.__getitem__)),
        missing=placement.missing if placement else (),
        ask=tuple(_asked(question, diagnosis.given) for question in diagnosis.questions),
        layout=layout.name,
        in_favour=diagnosis.chosen.match.in_favour,
        against=diagnosis.chosen.match.against,
        notes=(*diagnosis.notes(), *diagnosis.problems),
        prefix=diagnosis.chosen.prefix,
        candidate=diagnosis.chosen.candidate,
        problem=flaw.to_json() if flaw else {},
    )
    return diagnosed(inspection, diagnosis.chosen.tensors, network)


def _describe(
    name: str, tensor: Tensor, becomes: tuple[str, ...] | None, left_over: bool, placement: Placement | None
) -> TensorInfo:
    """One tensor; without a placement, only the layout's names decide (`becomes`; None: unknown name)."""
    if left_over:
        status = "unneeded"
    elif becomes is None or (placement and name in placement.unexpected):
        status = "unexpected"
    else:
        status = "misshapen" if placement and name in placement.misshapen else "matched"
    return TensorInfo(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), status, becomes or ())


def _asked(question: Question, given: GivenAnswers) -> Asked:
    answer = answer_of(question, given.settings)
    origin = next((given.origins[name] for name in (question.name, *question.also) if name in given.origins), "")
    return Asked(
        question.name, question.words, question.consequence, question.needed, answer, question.allowed, origin, question.proposal
    )


# --- Tokenizers: the vocabularies that were given, else plain ids ---------------------------------------------------------


def tokenizers_of(spec: ModelSpec, answers: Answers, texts: Mapping[str, tuple[str, ...]], layout: Layout) -> dict[str, Tokenizer]:
    """A tokenizer for each strip of ids.

    Args:
        texts: vocabularies by the setting that named them.

    Raises:
        BadSetting: a vocabulary has another number of texts than the network has ids.
    """
    tokenizers: dict[str, Tokenizer] = {}
    splits = answers.of.get("tokenizer", "split").split(",")
    for strip, split, stack in zip(("source", "target"), (splits[0], splits[-1]), spec.stacks.values(), strict=False):
        pad_id = spec.source_padding if strip == "source" else spec.pad_id
        specials = Specials(pad_id, spec.start_id, spec.end_id, spec.unk_id)
        vocabulary = texts.get(f"{strip}_vocab")
        # a vocabulary of another length would name every token wrongly
        if vocabulary is not None and len(vocabulary) != stack.vocab:
            raise DoesNotFit(
                name=f"{strip}_vocab",
                reason=phrase("it has {found:,} entries, and the network has {ids:,} ids", found=len(vocabulary), ids=stack.vocab),
            )
        if vocabulary is not None:
            specials = (
                _specials_in_vocabulary(specials, vocabulary) if strip == "source" and spec.decoder and spec.encoder else specials
            )
            starts, ends = strip in layout.starts, strip in layout.ends
            if isinstance(vocabulary, Subwords):
                # its own pieces tell how a text is split, whatever the setting says
                start, end = (() if id_ is None else (id_,) for id_ in (specials.start, specials.end))
                ids_of_network = (specials.pad, specials.start, specials.end)
                special = vocabulary.process.special.union(id_ for id_ in ids_of_network if id_ is not None)
                unknown = vocabulary.process.unknown if specials.unknown is None else specials.unknown
                tokenizers[strip] = SubwordTokenizer(vocabulary, special, unknown, start if starts else (), end if ends else ())
            else:
                tokenizers[strip] = VocabularyTokenizer(split, vocabulary, specials, starts, ends)
        elif stack.vocab:
            tokenizers[strip] = IdTokenizer(stack.vocab, specials)
    return tokenizers


def _specials_in_vocabulary(specials: Specials, vocabulary: tuple[str, ...]) -> Specials:
    """Special ids of the source vocabulary, which may differ from those of the target, the network's own."""
    start, end, unknown = (place_of(vocabulary, names) for names in (STARTS, ENDS, UNKNOWNS))
    return Specials(
        specials.pad,
        specials.start if start is None else start,
        specials.end if end is None else end,
        specials.unknown if unknown is None else unknown,
    )
