"""Copies are measured in batches that stay below the configured memory, however many heads and tokens there are."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from model.features.what_if.copies import Copies
from model.features.what_if.pace import Pace
from model.features.what_if.scoring import Scorer
from model.inference.calls import alone
from tests.model.features.what_if.test_layerwise import example, some

NAMES = ("paper", "modern, tied", "language model")


class Live(TorchDispatchMode):
    """Bytes of the tensors that operations made and that are still alive, weights of the network left out.

    Attributes:
        most: the largest number so far.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._weights = {each.untyped_storage().data_ptr() for each in (*network.parameters(), *network.buffers())}
        self._now, self.most = dict[int, int](), 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, torch.Tensor) and (place := each.untyped_storage().data_ptr()) not in self._weights:
                self._now[place] = each.untyped_storage().nbytes()
                weakref.finalize(each.untyped_storage(), self._now.pop, place, None)
        self.most = max(self.most, sum(self._now.values()))
        return made


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and bytes of each batch that was computed."""
    found = list[tuple[int, int]]()
    computed: Callable[..., Any] = Scorer._batch

    def counted(self: Scorer, copies: Copies, passes: Any, read: Any) -> Any:
        network = self.example.runner.network
        assert isinstance(network, nn.Module)
        with Live(network) as live:
            answer = computed(self, copies, passes, read)
        found.append((len(copies), live.most))
        return answer

    monkeypatch.setattr(Scorer, "_batch", counted)
    monkeypatch.setattr(Pace, "units", lambda self: np.inf)
    return found


@torch.no_grad()
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_takes_no_more_memory_than_was_allowed(name: str, batches: list[tuple[int, int]]) -> None:
    own = example(name)
    copies = some(own, 40)
    whole = Scorer(own, alone, 1 << 30).score(copies)
    assert [rows for rows, _ in batches] == [40]
    most = batches[0][1]
    batches.clear()
    small = Scorer(own, alone, most // 4).score(copies)
    assert sum(rows for rows, _ in batches) == 40
    assert len(batches) >= 4
    assert max(asked for _, asked in batches) <= most // 4
    np.testing.assert_allclose(small, whole, atol=1e-5)
