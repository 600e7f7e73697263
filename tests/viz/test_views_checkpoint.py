"""The page Checkpoint: files that visitors send are diagnosed, asked about and seen, or refused in one sentence."""

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from model.engine.api import Inspect, Models, Receive, Run
from model.engine.local import LocalEngine
from model.engine.sent_files import names_server_file, vocabulary_name
from model.engine.uploads import MOST_WORDS, Uploads
from model.errors import BadSetting, NotACheckpoint, OpenQuestions, WholeObject
from model.requests.request import RunRequest
from tests.app.conftest import shelf, stocked, tiny  # noqa: F401  # fixtures of the whole app
from tests.app.visiting import Visitor
from tests.patience import HANG_S

pytestmark = pytest.mark.slow  # the whole app

GOLDEN = Path(__file__).parents[1] / "golden"
TOLD = {"decoder_heads": "2", "decoder_passes": "2", "encoder_heads": "2", "source_pad_id": "1", "target_pad_id": "1"}
IDS = {"bos_id": "2", "eos_id": "3"}
PDF = b"%PDF-1.7\n" + bytes(64)


def sent(name: str, data: bytes) -> Visitor:
    """A visitor who has sent a file."""
    visitor = Visitor("checkpoint")
    visitor.app.file_uploader[0].upload(name, data)
    visitor._run()
    return visitor


def said(visitor: Visitor) -> str:
    groups: list[Any] = [visitor.app.markdown, visitor.app.caption, visitor.app.warning, visitor.app.info]
    return "\n".join(element.value for group in groups for element in group).replace("\\", "").replace("\u2060", "")


def numbers(visitor: Visitor) -> dict[str, str]:
    return {metric.label: metric.value for metric in visitor.app.metric}


def answer(visitor: Visitor, **answers: str) -> None:
    """Fills the form and takes the answers."""
    fields = [*visitor.app.selectbox, *visitor.app.text_input]
    for name, value in answers.items():
        next(field for field in fields if (field.key or "").endswith(f":{name}")).set_value(value)
    next(button for button in visitor.app.button if button.label == "Apply these answers").click()
    visitor._run()


def test_a_file_is_sent_asked_about_and_its_heads_are_seen(stocked: Path) -> None:  # noqa: F811
    visitor = sent("mine_[x](e.org) $y$.pt", (GOLDEN / "000_tiny_a.pt").read_bytes())
    assert visitor.problems == []
    assert "mine_[x](e.org) $y$.pt: Translator of the sequence-to-sequence tutorial" in said(visitor)
    assert "90 of 90 names are known." in said(visitor)
    assert "No evidence against it." in said(visitor)
    assert numbers(visitor)["parameters"] == "?"
    assert not [button for button in visitor.app.button if button.key == "open-in-explore"]

    answer(visitor, **TOLD, **IDS)
    assert visitor.problems == []
    weights = torch.load(GOLDEN / "000_tiny_a.pt", weights_only=True)
    assert numbers(visitor) == {
        "Layers × heads": "4 × 2",
        "parameters": f"{sum(tensor.numel() for tensor in weights.values()):,}",
        "matched tensors": "90",
        "missing": "0",
        "unexpected": "0",
        "wrong shape": "0",
    }
    table = next(each for each in visitor.app.dataframe if "histogram" in each.value).value.set_index("name")
    for name, tensor in weights.items():
        assert table.loc[name, "shape"] == " × ".join(map(str, tensor.shape))
        assert table.loc[name, "norm"] == pytest.approx(float((tensor.double() ** 2).sum() ** 0.5), abs=0.005)
        assert table.loc[name, "mean"] == pytest.approx(float(tensor.double().mean()), abs=1e-4)
        assert table.loc[name, "deviation"] == pytest.approx(
            float(((tensor.double() - tensor.double().mean()) ** 2).mean() ** 0.5), abs=1e-4
        )

    assert "These weights look untrained" in said(visitor)
    assert "None of the 12 heads is dead, and no two are duplicates." in said(visitor)
    assert visitor.drawn == 3, "a matrix and the singular values of both products"
    shown = json.loads(visitor.app.get("plotly_chart")[0].proto.spec)["data"][0]["z"]
    query = weights["encoder.layers.0.self_attention.fc_q.weight"][:8]
    assert np.frombuffer(base64.b64decode(shown["bdata"]), shown["dtype"]).reshape(8, 16) == pytest.approx(query.double().numpy())
    near = next(each for each in visitor.app.dataframe if "cosine" in each.value).value
    table = torch.nn.functional.normalize(weights["encoder.tok_embedding.weight"].double(), dim=1)
    assert near["cosine"].max() == pytest.approx(float((table[[*range(4), *range(5, 28)]] @ table[4]).max()), abs=1e-3)

    visitor.press("open-in-explore")
    visitor.go("explore")
    assert visitor.problems == []
    assert visitor.drawn
    assert visitor.url["set"] == " ".join(f"{name}={value}" for name, value in sorted((TOLD | IDS).items()))
    assert visitor.tokens("source") == ["2", "0", "4", "5", "6", "7", "3"]
    visitor.type("text", "2, 4 9, 3")
    assert visitor.tokens("source") == ["2", "4", "9", "3"]
    for page in ("step", "masks", "positions"):
        visitor.go(page)
        assert visitor.drawn, page
        assert visitor.problems == [], page
    again = Visitor(**visitor.url)
    assert again.drawn, "the link opens it while the server has it"
    visitor.type("text", "ein Hund")
    assert len(visitor.problems) == 1
    assert "token ids separated by spaces" in visitor.problems[0]


GERMAN, ENGLISH = (json.loads((GOLDEN / "000_tiny_a.json").read_text())["vocab"][side] for side in ("src", "trg"))


def send_words(visitor: Visitor, name: str, data: bytes) -> None:
    """Sends a vocabulary."""
    next(each for each in visitor.app.file_uploader if (each.key or "").startswith("widget:words")).upload(name, data)
    visitor._run()


def test_vocabularies_are_sent_and_tokens_have_names(stocked: Path) -> None:  # noqa: F811
    visitor = sent("mine.pt", (GOLDEN / "000_tiny_a.pt").read_bytes())
    answer(visitor, **{name: TOLD[name] for name in ("decoder_heads", "decoder_passes", "encoder_heads")})
    send_words(visitor, "src.txt", "\r\n".join(GERMAN).encode("utf-8-sig"))
    assert [name for name in dict(visitor.view.parsed_settings()) if name.endswith("vocab")] == ["source_vocab"], (
        "its name says which"
    )
    ours = {"target": {"split": "split", "vocabulary": ENGLISH}}
    send_words(visitor, "tokenizer.json", json.dumps(ours).encode())
    assert "target_vocab" not in dict(visitor.view.parsed_settings()), "its name does not tell"
    second = next(field for field in visitor.app.selectbox if (field.key or "").endswith(":target_vocab"))
    assert second.options == ["src.txt", "tokenizer.json"]
    answer(visitor, target_vocab=vocabulary_name(json.dumps(ours).encode()))
    assert visitor.problems == []
    visitor.go("explore")
    visitor.type("text", "ein mann läuft auf der straße .")
    visitor.type("target", "a man runs")
    assert visitor.tokens("source") == ["<sos>", "ein", "mann", "läuft", "auf", "der", "straße", ".", "<eos>"]
    assert visitor.tokens("target") == ["<sos>", "a", "man", "runs", "<eos>"]
    assert visitor.problems == []
    assert Visitor(**visitor.url).tokens("target") == visitor.tokens("target"), "the link has them while the server has them"
    visitor.go("checkpoint")
    answer(visitor, target_vocab="")
    assert [name for name in dict(visitor.view.parsed_settings()) if name.endswith("vocab")] == ["source_vocab"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "src.txt",
            "\n".join(GERMAN[:-1]).encode(),
            "source_vocab cannot be used: it has 27 entries, and the network has 28 ids",
        ),
        (
            "src.json",
            json.dumps(dict.fromkeys(GERMAN, 0)).encode(),
            "source_vocab: “src.json” is not accepted. Allowed: a JSON list",
        ),
        ("src.txt", b"\xff\xfe\x00", "is not a text file that can be read (UnicodeDecodeError)"),
        ("src.txt", bytes(MOST_WORDS + 1), "at most 8,388,608 are read"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_one_sentence_and_changes_nothing(
    stocked: Path,  # noqa: F811
    name: str,
    data: bytes,
    words: str,
) -> None:
    visitor = sent("mine.pt", (GOLDEN / "000_tiny_a.pt").read_bytes())
    answer(visitor, **TOLD)
    before = visitor.view.settings
    send_words(visitor, name, data)
    assert len(visitor.problems) == 1
    assert words in visitor.problems[0]
    assert visitor.view.settings == before


def test_vocabularies_that_went_and_files_of_the_server_are_refused(stocked: Path) -> None:  # noqa: F811
    uploads = Uploads(most_files=2)
    upload = uploads.get(uploads.keep((GOLDEN / "000_tiny_a.pt").read_bytes(), "a.pt"))
    assert upload is not None
    names = [uploads.keep(f"word{i}".encode(), "words.txt") for i in range(3)]
    with pytest.raises(BadSetting, match="send it once more"):
        upload.inspect({"source_vocab": names[0]})
    assert upload.inspect({"source_vocab": names[2]}).layout == "tutorial", "its length counts once the network is known"
    for value in ("/etc/passwd", "words-../../etc/pass", "words-0123456789abcdef0"):
        assert names_server_file("source_vocab", value)
    assert not names_server_file("source_vocab", names[0])
    assert not names_server_file("n_heads", "8")


def test_a_wrong_answer_is_one_sentence_and_the_form_stays(stocked: Path) -> None:  # noqa: F811
    visitor = sent("mine.pt", (GOLDEN / "000_tiny_a.pt").read_bytes())
    answer(visitor, **TOLD | {"source_pad_id": "many"})
    assert visitor.problems == ["source_pad_id: “many” is not accepted. Allowed: a whole number from 0 to 27."]
    assert visitor.view.settings == ""
    answer(visitor, source_pad_id="1")
    assert visitor.problems == [], "the other answers are still there"
    assert dict(visitor.view.parsed_settings()) == TOLD


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("paper.pt", PDF, "paper.pt holds no weights that can be read here. It is: a PDF document."),
        ("whole.pt", (GOLDEN / "004_tiny_a.module-unsafe.pt").read_bytes(), "Nothing was"),
        ("empty.pth", b"", "empty.pth"),
        ("half.pt", (GOLDEN / "000_tiny_a.pt").read_bytes()[:3000], "half.pt"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_one_sentence(stocked: Path, name: str, data: bytes, words: str) -> None:  # noqa: F811
    visitor = sent(name, data)
    assert len(visitor.problems) == 1
    assert words in visitor.problems[0]
    assert visitor.view.model == ""
    assert not visitor.app.metric


def test_a_folder_of_our_own_is_diagnosed_and_asks_nothing(stocked: Path) -> None:  # noqa: F811
    visitor = Visitor("checkpoint", model="tiny")
    assert visitor.problems == []
    assert "A Headlight checkpoint folder (format" in said(visitor)
    assert numbers(visitor)["missing"] == "0"
    assert not visitor.app.get("form")
    visitor.press("open-in-explore")
    visitor.go("explore")
    assert visitor.drawn


def test_weights_that_are_not_finite_break_no_page(stocked: Path, tmp_path: Path) -> None:  # noqa: F811
    state = torch.load(GOLDEN / "000_tiny_a.pt", weights_only=True)
    for name in ("encoder.layers.0.self_attention.fc_q.weight", "encoder.tok_embedding.weight", "decoder.fc_out.weight"):
        state[name][:4] = torch.nan
    torch.save(state, tmp_path / "nan.pt")
    visitor = sent("nan.pt", (tmp_path / "nan.pt").read_bytes())
    answer(visitor, **TOLD, **IDS)
    assert visitor.problems == []
    assert "NaN and" in said(visitor)
    assert not visitor.app.get("download_button")
    visitor.press("open-in-explore")
    for page in ("explore", "masks"):
        visitor.go(page)
        assert len(visitor.problems) == 1
        assert "This run produced NaN or infinite values" in visitor.problems[0]
        assert not visitor.drawn


def test_a_public_server_takes_no_files(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    monkeypatch.setattr("viz.session.access._visitor", lambda: "")  # AppTest has no connection, so no address
    visitor = Visitor("checkpoint")
    assert not visitor.app.file_uploader
    assert "does not accept uploads" in said(visitor)


def test_without_any_checkpoint_a_file_can_still_be_sent(shelf: Path) -> None:  # noqa: F811
    visitor = sent("lm.pt", (GOLDEN / "001_tiny_a.pt").read_bytes())
    assert visitor.problems == []
    assert "lm.pt" in said(visitor)


def test_a_link_to_an_upload_that_went_is_answered_in_a_sentence(stocked: Path) -> None:  # noqa: F811
    visitor = Visitor("checkpoint", model="upload-0000000000000000")
    assert len(visitor.problems) == 1
    assert "upload-0000000000000000" in visitor.problems[0]
    visitor.go("explore")
    assert visitor.drawn


@pytest.mark.parametrize("settings", ["source_vocab=/etc/passwd", "n_heads=2 target_vocab=x", "n_heads", "n_heads=2 n_heads=4"])
def test_a_link_names_no_file_of_the_server(stocked: Path, settings: str) -> None:  # noqa: F811
    visitor = Visitor(set=settings)
    assert len(visitor.problems) == 1
    assert "but no files" in visitor.problems[0]
    assert visitor.view.settings == ""


@pytest.mark.parametrize("file", ["002_tiny_mha.pt", "002_tiny_encoder.pt", "003_tiny_a.pt", "004_tiny_a.pt", "001_tiny_a.pt"])
def test_every_kind_of_file_gets_a_diagnosis(stocked: Path, file: str) -> None:  # noqa: F811
    visitor = sent(file, (GOLDEN / file).read_bytes())
    assert visitor.problems == []
    assert file in said(visitor)
    assert visitor.app.dataframe


def test_an_engine_runs_what_it_received_and_writes_nothing(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, torch.device("cpu"))
    data = (GOLDEN / "000_tiny_a.pt").read_bytes()
    name = engine.ask(Receive(data, "a.pt"))
    assert engine.ask(Receive(data, "b.pt")) == name
    assert engine.ask(Models()).models == (), "an upload is known to those who sent it"
    with pytest.raises(OpenQuestions):
        engine.ask(Run(RunRequest(name, (2, 4, 3))))
    settings = tuple((TOLD | IDS).items())
    by_ids = engine.ask(Run(RunRequest(name, (2, 4, 3), (2, 5), settings=settings)))
    typed = engine.ask(Run(RunRequest(name, "2 4,3", "2, 5", settings=settings)))
    site = next(iter(by_ids.attention))
    assert (typed.attention[site].weights == by_ids.attention[site].weights).all()
    with pytest.raises(BadSetting, match="source_vocab"):
        engine.ask(Inspect(name, (("source_vocab", "/etc/passwd"),)))
    assert list(tmp_path.iterdir()) == []


def test_uploads_that_are_too_many_or_too_large_make_room() -> None:
    files = [(GOLDEN / name).read_bytes() for name in ("000_tiny_a.pt", "001_tiny_a.pt", "004_tiny_a.pt")]
    few = Uploads(most_files=2)
    names = [few.keep(data, "x.pt") for data in files[:2]]
    few.get(names[0])
    names.append(few.keep(files[2], "x.pt"))
    assert [few.get(name) is not None for name in names] == [True, False, True]
    small = Uploads(most_bytes=len(files[0]) + 1)
    names = [small.keep(data, "x.pt") for data in files]
    assert small.get(names[0]) is None
    assert small.get(names[2]) is not None


def test_a_refused_upload_is_not_kept() -> None:
    uploads, object_ = Uploads(), (GOLDEN / "004_tiny_a.module-unsafe.pt").read_bytes()
    with pytest.raises(NotACheckpoint):
        uploads.keep(PDF, "x.pt")
    with pytest.raises(WholeObject):
        uploads.keep(object_, "x.pt")
    assert [uploads.get(f"upload-{sha256(data).hexdigest()[:16]}") for data in (PDF, object_)] == [None, None]


def test_a_proposed_answer_takes_one_click() -> None:
    def field() -> None:
        from model.inspection.report import Asked
        from viz.views.checkpoint.questions import _field

        choices = ("positional_encoding.pos_embedding", "none")
        _field(Asked("target_positions", "", "Which tensor it is.", True, None, choices, proposal=choices[0]), "answer")

    drawn = AppTest.from_function(field, default_timeout=HANG_S).run()
    assert drawn.selectbox(key="answer").value is None, "it is proposed, not assumed"
    drawn.button(key="answer:proposal").click().run()
    assert drawn.selectbox(key="answer").value == "positional_encoding.pos_embedding"
    assert not drawn.exception
