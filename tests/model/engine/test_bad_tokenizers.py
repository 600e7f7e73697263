"""A folder with a bad tokenizer beside a good model: whoever asks the bad one gets a sentence, everybody else an answer."""

from pathlib import Path

import pytest

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import TokenizerDied
from model.requests.request import RunRequest
from tests import folders
from tests.bad_tokenizers import panics
from tests.networks import save_checkpoint
from tests.runs import CPU, for_session

pytestmark = pytest.mark.slow  # the transformers library


def test_a_tokenizer_that_panics_kills_no_thread_of_the_engine(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "good")
    folders.save(tmp_path / "bad", "bert")
    panics().save(str(tmp_path / "bad" / "tokenizer.json"))
    engine = LocalEngine(tmp_path, CPU)
    for session in ("one", "two"):
        with pytest.raises(TokenizerDied, match=r"The tokenizer bad/tokenizer\.json failed on this text"):
            for_session(session, engine.ask)(Run(RunRequest("bad", "x" * 40)))
        assert for_session(session, engine.ask)(Run(RunRequest("good", "w4 w5"))).tokens["source"].ids == (2, 4, 5, 3)
    assert for_session("one", engine.ask)(Run(RunRequest("bad", "x"))).tokens["source"].ids == (1,)
