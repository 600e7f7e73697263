"""Layouts: how training programs name their weights, one file each; LAYOUTS lists them.

May import: model.errors, model.inspection, model.safe_loading, model.spec, model.tokenizers, model.transformer.
"""

from model.checkpoints.layouts.annotated import ANNOTATED
from model.checkpoints.layouts.base import Layout
from model.checkpoints.layouts.d2l import D2L
from model.checkpoints.layouts.fairseq import FAIRSEQ
from model.checkpoints.layouts.gpt import GPT
from model.checkpoints.layouts.joeynmt import JOEYNMT
from model.checkpoints.layouts.litgpt import LITGPT
from model.checkpoints.layouts.llama import LLAMA
from model.checkpoints.layouts.opennmt import OPENNMT
from model.checkpoints.layouts.own import OWN
from model.checkpoints.layouts.shared_head import SHARED_HEAD
from model.checkpoints.layouts.torch_lm import TORCH_LM
from model.checkpoints.layouts.torch_transformer import TORCH_TRANSFORMER
from model.checkpoints.layouts.tutorial import TUTORIAL
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
    OWN,
)
"""All layouts. The order does not matter: if two match, the user is asked."""
