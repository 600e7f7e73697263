"""Layouts: how training programs name their weights, as tables of roles or in files of their own; LAYOUTS lists them."""

from model.checkpoints.layouts.base import Layout
from model.checkpoints.layouts.language_models import GPT, LITGPT, LLAMA, TORCH_LM
from model.checkpoints.layouts.own import NATIVE_NAMES
from model.checkpoints.layouts.shared_head import SHARED_HEAD
from model.checkpoints.layouts.torch_transformer import TORCH_TRANSFORMER
from model.checkpoints.layouts.translators import ANNOTATED, D2L, FAIRSEQ, JOEYNMT, OPENNMT, TUTORIAL
from model.checkpoints.layouts.tutorial_parts import TUTORIAL_PARTS

LAYOUTS: tuple[Layout, ...] = (
    TUTORIAL,
    TUTORIAL_PARTS,
    TORCH_LM,
    SHARED_HEAD,
    D2L,
    TORCH_TRANSFORMER,
    ANNOTATED,
    GPT,
    JOEYNMT,
    FAIRSEQ,
    LLAMA,
    LITGPT,
    OPENNMT,
    NATIVE_NAMES,
)
"""All layouts. The order does not matter: if two match, the user is asked."""
