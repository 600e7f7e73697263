"""Who sends slow pickles, huge texts, words that kill a tokenizer, or goes away: each is told so, and others get their answers."""

from benchmarks.load import badly_behaved
from benchmarks.load.badly_behaved import Plan
from model.engine.uploads import Uploads

EXPECTED = {"slow_pickle": {200}, "long_text": {422}, "bad_tokenizer": {422}, "dead_tab": {0}}
"""Statuses by kind; 0: they did not stay for an answer."""

FROZEN_SECONDS = 20.0
"""Far above what a cached run takes on a busy machine, and far below the minutes for which one could be held up."""


def test_a_few_seconds_of_the_badly_behaved_fail_nobody_and_freeze_nobody() -> None:
    found = badly_behaved.measure(Plan(people=2, idle=0.2, seconds=2.0, pace=4.0, pickle_steps=200_000))
    assert found.errors == []
    assert {kind: set(replies) for kind, replies in found.replies.items()} == EXPECTED
    assert sum(sum(replies.values()) for replies in found.replies.values()) == 8
    assert len(found.beside) >= 2
    assert max(found.beside) < FROZEN_SECONDS


def test_a_slow_pickle_is_a_checkpoint_like_any_other_but_longer() -> None:
    assert Uploads().keep(badly_behaved.slow_pickle(1000), "slow.pt").startswith("upload-")
    assert len(badly_behaved.slow_pickle(1000)) - len(badly_behaved.slow_pickle(0)) >= 2000
