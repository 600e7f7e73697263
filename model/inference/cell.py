"""The arithmetic of one attention cell, with the scale and output projection of the network that ran."""

from model.checkpoints.loader import AnyNetwork
from model.errors import NoArithmetic
from model.huggingface.network import ForeignNetwork
from model.huggingface.recorded.network import RecordedNetwork
from model.trace.cell_arithmetic import Explanation, check_cell, explain
from model.trace.types import Site, Trace
from model.transformer.attention import MultiHeadAttention
from model.transformer.build import Network
from model.transformer.stacks import CausalLM


def explain_cell(network: AnyNetwork, trace: Trace, site: str, head: int, query: int, key: int) -> Explanation:
    """The arithmetic of one cell of a run of `network` that recorded scores, qkv and context.

    Raises:
        UnknownSite, UnknownHead, BadSetting: the run has no such cell.
        UnknownTensor: the run did not record what is needed.
    """
    where = check_cell(trace, site, head, query, key).site
    if isinstance(network, RecordedNetwork):
        raise NoArithmetic(site=where, reason=network.why)
    if isinstance(network, ForeignNetwork):
        scale, output = network.scale_and_output(where)
    else:
        attention = attention_at(network, where)
        scale, output = attention.scale, attention.output.weight.detach()
    return explain(trace, site, head, query, key, scale, output.float().cpu().numpy())


def attention_at(network: Network, site: Site) -> MultiHeadAttention:
    """The attention module that is applied at a site."""
    stack = network if isinstance(network, CausalLM) else network.get_submodule(site.stack)
    layer = stack.get_submodule(f"layers.{site.layer}")
    parts = dict(layer.named_children())
    module = parts.get(f"{site.kind}_attention") or parts["attention"]
    assert isinstance(module, MultiHeadAttention)
    return module
