"""The page Checkpoint: files that visitors send are diagnosed, asked about and seen, or refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest
import torch

from model.engine.base import RunRequest
from model.engine.local import LocalEngine
from model.engine.uploads import Uploads
from model.errors import BadSetting, NotACheckpoint, OpenQuestions, WholeObject
from tests.app.conftest import shelf, stocked, tiny  # noqa: F401  # fixtures of the whole app
from tests.app.visiting import Visitor

GOLDEN = Path(__file__).parents[1] / "golden"
TOLD = {"decoder_heads": "2", "decoder_passes": "2", "encoder_heads": "2", "source_pad_id": "1", "target_pad_id": "1"}
IDS = {"bos_id": "2", "eos_id": "3"}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


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
    next(button for button in visitor.app.button if button.label == "Take these answers").click()
    visitor._run()


def test_a_file_is_sent_asked_about_and_its_heads_are_seen(stocked: Path) -> None:  # noqa: F811
    visitor = sent("mine_[x](e.org) $y$.pt", (GOLDEN / "000_tiny_a.pt").read_bytes())
    assert visitor.problems == []
    assert "mine_[x](e.org) $y$.pt: Translator of the sequence-to-sequence tutorial" in said(visitor)
    assert "knows 90 of 90 names" in said(visitor)
    assert "Nothing speaks against it." in said(visitor)
    assert numbers(visitor)["learned numbers"] == "open"
    assert not [button for button in visitor.app.button if button.key == "open-in-explore"]

    answer(visitor, **TOLD, **IDS)
    assert visitor.problems == []
    weights = torch.load(GOLDEN / "000_tiny_a.pt", weights_only=True)
    assert numbers(visitor) == {
        "learned numbers": f"{sum(tensor.numel() for tensor in weights.values()):,}",
        "tensors matched": "90",
        "missing": "0",
        "unexpected": "0",
        "of another shape": "0",
    }
    table = visitor.app.dataframe[0].value.set_index("tensor")
    for name, tensor in weights.items():
        assert table.loc[name, "shape"] == " × ".join(map(str, tensor.shape))
        assert table.loc[name, "norm"] == pytest.approx(float((tensor.double() ** 2).sum() ** 0.5))
        assert table.loc[name, "mean"] == pytest.approx(float(tensor.double().mean()))
        assert table.loc[name, "deviation"] == pytest.approx(float(((tensor.double() - tensor.double().mean()) ** 2).mean() ** 0.5))

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
    assert "ids with blanks between them" in visitor.problems[0]


def test_a_wrong_answer_is_one_sentence_and_the_form_stays(stocked: Path) -> None:  # noqa: F811
    visitor = sent("mine.pt", (GOLDEN / "000_tiny_a.pt").read_bytes())
    answer(visitor, **TOLD | {"source_pad_id": "many"})
    assert visitor.problems == ["source_pad_id is 'many', but it must be a whole number from 0 to 27: change it and run again."]
    assert visitor.view.settings == ""
    answer(visitor, source_pad_id="1")
    assert visitor.problems == [], "the other answers are still there"
    assert dict(visitor.view.told()) == TOLD


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("picture.pt", PNG, "picture.pt is"),
        ("whole.pt", (GOLDEN / "004_tiny_a.module-unsafe.pt").read_bytes(), "nothing was"),
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
    visitor = Visitor("checkpoint")
    assert visitor.problems == []
    assert "a checkpoint folder of Headlight" in said(visitor)
    assert numbers(visitor)["missing"] == "0"
    assert not visitor.app.get("form")
    visitor.press("open-in-explore")
    visitor.go("explore")
    assert visitor.drawn


def test_a_public_server_takes_no_files(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    visitor = Visitor("checkpoint")
    assert not visitor.app.file_uploader
    assert "so it takes no files" in said(visitor)


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
    assert "none that names a file" in visitor.problems[0]
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
    name = engine.receive(data, "a.pt")
    assert engine.receive(data, "b.pt") == name
    assert engine.models() == (), "an upload is known to those who sent it"
    with pytest.raises(OpenQuestions):
        engine.run(RunRequest(name, (2, 4, 3)))
    settings = tuple((TOLD | IDS).items())
    by_ids = engine.run(RunRequest(name, (2, 4, 3), (2, 5), settings=settings))
    typed = engine.run(RunRequest(name, "2 4,3", "2, 5", settings=settings))
    site = next(iter(by_ids.attention))
    assert (typed.attention[site].weights == by_ids.attention[site].weights).all()
    with pytest.raises(BadSetting, match="source_vocab"):
        engine.inspect(name, (("source_vocab", "/etc/passwd"),))
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
    uploads = Uploads()
    with pytest.raises(NotACheckpoint):
        uploads.keep(PNG, "x.pt")
    with pytest.raises(WholeObject):
        uploads.keep((GOLDEN / "004_tiny_a.module-unsafe.pt").read_bytes(), "x.pt")
    assert not uploads._kept
