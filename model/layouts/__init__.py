"""Layouts: how the programs that people train with name their weights. One file each; LAYOUTS lists them."""

from model.layouts.annotated import ANNOTATED
from model.layouts.base import Layout
from model.layouts.d2l import D2L
from model.layouts.gpt import GPT
from model.layouts.own import OWN
from model.layouts.shared_head import SHARED_HEAD
from model.layouts.torch_lm import TORCH_LM
from model.layouts.torch_transformer import TORCH_TRANSFORMER
from model.layouts.tutorial import TUTORIAL
from model.layouts.tutorial_parts import TUTORIAL_PARTS

LAYOUTS: tuple[Layout, ...] = (
    TUTORIAL,
    TUTORIAL_PARTS,
    TORCH_LM,
    SHARED_HEAD,
    D2L,
    TORCH_TRANSFORMER,
    ANNOTATED,
    GPT,
    OWN,
)
"""Every layout known here. Their order decides nothing: two that match are asked about."""
