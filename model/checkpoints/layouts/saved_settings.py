"""Settings that a training program saved beside its weights: `model_args`, `hyper_parameters`, `args`, `config` and the like.

They answer questions like given settings. Only plain values count, as `safe_loading` lists them; a value under several names or in
several places counts only if all agree.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from model.checkpoints.layouts.questions import Question
from model.errors import ContradictsFile, ContradictsItself, NotComputedHere, phrase
from model.safe_loading.plan import OtherEntry

CONTAINERS = re.compile(
    r"model_(args|config|cfg|hparams|params)|hyper_?param(eter)?s|hparams|args|arguments|config|cfg|conf|params|opts?|options|settings"
    r"|__metadata__",
    re.IGNORECASE,
)
"""Keys under which programs save their settings; the file's top level counts too."""

_NAMES: Mapping[str, str] = {
    "n_heads": "n_heads n_head nhead nheads num_heads num_head heads num_attention_heads attention_heads n_attention_heads h",
    "encoder_heads": "encoder_heads enc_heads encoder_attention_heads num_encoder_heads n_enc_heads",
    "decoder_heads": "decoder_heads dec_heads decoder_attention_heads num_decoder_heads n_dec_heads",
    "head_dim": "head_dim d_head dim_head head_size",
    "key_heads": "key_heads n_kv_heads n_kv_head num_kv_heads num_key_value_heads n_query_groups num_query_groups",
    "rotary_base": "rotary_base rope_theta rope_base",
    "variant": "use_scaled_rope",
    "norm_epsilon": "norm_epsilon norm_eps rms_norm_eps layer_norm_eps layernorm_epsilon",
    "max_positions": "max_positions max_seq_len max_seq_length",
    "decoder_passes": "decoder_passes",
    "norm_order": "norm_order norm_first pre_norm prenorm pre_ln preln normalize_before",
    "activation": "activation activation_function activation_fn hidden_act act_fn act pos_ffn_activation_fn",
    "embed_scale": "embed_scale scale_embedding scale_embeddings",
    "causal": "causal is_causal",
    "pad_id": "pad_id pad_idx pad_index pad_token_id padding_idx",
    "source_pad_id": "source_pad_id src_pad_id src_pad_idx source_pad_idx src_pad_token_id",
    "target_pad_id": "target_pad_id tgt_pad_id tgt_pad_idx trg_pad_id trg_pad_idx target_pad_idx",
    "bos_id": "bos_id bos_idx bos_token_id sos_id sos_idx sos_token_id start_id trg_sos_idx tgt_sos_idx",
    "eos_id": "eos_id eos_idx eos_token_id end_id trg_eos_idx tgt_eos_idx",
    "unk_id": "unk_id unk_idx unk_token_id",
}
"""Names of settings in other programs, and the question each answers."""

_QUESTIONS = {name: question for question, names in _NAMES.items() for name in names.split()}
_SWITCHES = {
    "norm_order": ("post", "pre"),
    "embed_scale": ("none", "sqrt"),
    "causal": ("false", "true"),
    "variant": ("plain", "scaled"),
}
"""Meaning of false and true."""

_REVERSED = {"no_scale_embedding": "embed_scale"}
"""Names of settings that say the opposite of a question."""

_NUMBER = re.compile(r"\d(\.\d+)?(e-\d\d?)?")
_ACTIVATIONS = dict.fromkeys(("gelu_new", "gelu_tanh", "gelu_fast", "gelu_pytorch_tanh", "gelu_approx"), "gelu-tanh")


@dataclass(frozen=True)
class SavedAnswer:
    """One answer in a file: its value as in `--set`, and the keys that lead to it, joined by dots."""

    value: str
    where: str


def saved_answers(entries: Sequence[OtherEntry]) -> dict[str, tuple[SavedAnswer, ...]]:
    """Answers in a file by question; several if its places disagree."""
    values_of_question: dict[str, dict[str, SavedAnswer]] = {}
    for entry in entries:
        *parents, last = entry.name.split(".")
        question, value_in_file = _QUESTIONS.get(last.lower(), ""), entry.value
        if last in _REVERSED and isinstance(value_in_file, bool):
            question, value_in_file = _REVERSED[last], not value_in_file
        # `n_heads` of an optimizer's options says nothing of the network
        if question and (not parents or any(map(CONTAINERS.fullmatch, parents))):
            question = _question_about_stack(question, parents)
            if value := _answer_text(question, value_in_file):
                values_of_question.setdefault(question, {}).setdefault(value, SavedAnswer(value, entry.name))
    return {question: tuple(values.values()) for question, values in values_of_question.items()}


def _question_about_stack(question: str, parents: Iterable[str]) -> str:
    """`encoder.n_heads` is about the encoder."""
    stack = next((stack for stack in ("encoder", "decoder") if stack in parents), "")
    return f"{stack}_heads" if stack and question == "n_heads" else question


def _answer_text(question: str, value: object) -> str:
    """A plain value as an answer; empty: it cannot be one."""
    if isinstance(value, bool):
        return _SWITCHES[question][value] if question in _SWITCHES else ""
    if isinstance(value, float):
        return _number_text(question, value)
    text = str(value).strip().lower() if isinstance(value, str | int) else ""
    if question == "activation":
        return _ACTIVATIONS.get(text, text)
    if question == "norm_epsilon":
        return _number_text(question, float(text)) if _NUMBER.fullmatch(text) else ""
    if question not in _SWITCHES:
        return text if text.isascii() and text.isdecimal() else ""
    if text in ("true", "false"):
        return _SWITCHES[question][text == "true"]
    return text if text in _SWITCHES[question] else ""


def _number_text(question: str, value: float) -> str:
    """A number that need not be whole as an answer: 1e-05, or 10000.0 where a whole number is asked for."""
    if question == "norm_epsilon":
        return f"{value:g}"
    return str(int(value)) if question == "rotary_base" and value.is_integer() else ""


def agreed(saved: Mapping[str, tuple[SavedAnswer, ...]]) -> dict[str, SavedAnswer]:
    """The answers on which all places of a file agree."""
    return {question: values[0] for question, values in saved.items() if len(values) == 1}


def answers(
    saved: Mapping[str, SavedAnswer], questions: Sequence[Question], given_settings: Mapping[str, str], path: str
) -> Iterator[tuple[str, SavedAnswer]]:
    """The file's answers to the given questions.

    Raises:
        ContradictsFile: a given answer differs, or the file's answer is impossible with its tensors, or in this layout.
    """
    for question in questions:
        names = (question.name, *question.also)
        saved_answer = next((saved[name] for name in names if name in saved), None)
        given = next((given_settings[name] for name in names if name in given_settings), None)
        if saved_answer is None or (question.highest is not None and not question.allows(saved_answer.value)):
            continue  # ids outside any vocabulary, such as -100, mean none
        if not question.allows(saved_answer.value):
            kind = ContradictsItself if "head" in question.name else NotComputedHere  # shapes decide which numbers of heads fit
            raise kind(path=path, name=question.name, said=saved_answer.value, where=saved_answer.where, allowed=question.words)
        if given is not None and question.plain(given) != question.plain(saved_answer.value):
            raise ContradictsFile(path=path, name=question.name, said=saved_answer.value, where=saved_answer.where, given=given)
        if given is None:
            yield question.name, saved_answer


def noted(saved: Mapping[str, tuple[SavedAnswer, ...]], taken: Mapping[str, SavedAnswer]) -> tuple[str, ...]:
    """Notes for viewers, a sentence each: answers taken, and contradictions in the file."""
    listed = ", ".join(f"{name}={answer.value} ({answer.where})" for name, answer in taken.items())
    several = {name: values for name, values in saved.items() if len(values) > 1}
    return (
        *((phrase("The file itself answers: {answers}.", answers=listed),) if taken else ()),
        *(
            phrase(
                "The file gives several values for {name}, so none was used: {names}.",
                name=name,
                names=", ".join(f"{v.value} ({v.where})" for v in values),
            )
            for name, values in several.items()
        ),
    )
