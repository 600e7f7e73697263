"""The arithmetic of one attention cell, with the scale and output projection of the network that ran."""

from model.checkpoints.loader import AnyNetwork
from model.errors import NoArithmetic
from model.trace.cell_arithmetic import Explanation, check_cell, explain
from model.trace.types import Trace
from model.transformer.networks import RunsWhole


def explain_cell(network: AnyNetwork, trace: Trace, site: str, head: int, query: int, key: int) -> Explanation:
    """The arithmetic of one cell of a run of `network` that recorded scores, qkv and context.

    Raises:
        UnknownSite, UnknownHead, BadSetting: the run has no such cell.
        UnknownTensor: the run did not record what is needed.
    """
    # Whether there is such a cell is asked first: an unknown head is the more helpful error.
    where = check_cell(trace, site, head, query, key).site
    if isinstance(network, RunsWhole):
        raise NoArithmetic(site=where, reason=network.why)
    # The two numbers of the formula that no trace holds: the factor of the scores, and W_O.
    scale, output = network.scale_and_output(where)
    return explain(trace, site, head, query, key, scale, output.float().cpu().numpy())
