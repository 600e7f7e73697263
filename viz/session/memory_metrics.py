"""How the byte budget of the app's process is used, among Streamlit's own metrics at `/_stcore/metrics`."""

from collections.abc import Mapping, Sequence

from streamlit.runtime import get_instance
from streamlit.runtime.stats import GaugeStat

from model.sharing.caches import BUDGET

BYTES, MOST = "headlight_memory_bytes", "headlight_memory_budget_bytes"


class MemoryStats:
    """What the caches hold, by the kind of value, and what they may hold together."""

    stats_families = (BYTES, MOST)

    def get_stats(self, family_names: Sequence[str] | None = None) -> Mapping[str, Sequence[GaugeStat]]:
        """The current values of both families."""
        held = [GaugeStat(BYTES, nbytes, {"kind": kind}, unit="bytes") for kind, nbytes in sorted(BUDGET.held().items())]
        return {BYTES: held, MOST: [GaugeStat(MOST, int(BUDGET.most_bytes), unit="bytes")]}


def register() -> None:
    """Adds them to the metrics of the running server."""
    get_instance().stats_mgr.register_provider(MemoryStats())
