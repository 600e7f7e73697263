"""Lectures against real runs: what is true passes, what is false is named with its line."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from model import known_models
from model.__main__ import main
from model.engine.api import Engine, Listing, Models, Run
from model.engine.local import CHECKPOINTS
from model.errors import BadLecture
from model.features.circuit.sums import Why, Writes
from model.features.survey import film, tables
from model.features.survey.questions import StoredSurvey
from model.measures.catalogue import MEASURES
from model.requests.request import RunRequest
from tests.known import folder_of
from viz.canvas.scenes import attention
from viz.claims.runs import StepRuns
from viz.claims.subjects import Scope, Subject
from viz.features.compare import difference_scene as difference
from viz.features.compare import run_difference
from viz.features.lectures.presenter import check as command
from viz.features.lectures.presenter.check import not_drawn
from viz.features.lectures.presenter.panels import Picture, PicturePanel
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.presenter.scenes import scene_of
from viz.features.lectures.script import library, parser
from viz.features.lectures.script.answers import Answer, answer
from viz.features.lectures.script.check import Located, check, check_step, located
from viz.features.lectures.script.lecture import Question
from viz.features.lectures.script.library import models_here
from viz.features.lectures.script.telling import _given_away
from viz.panels import Table

FRONT = "---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: reverse-digits\n---\n"
DIGITS = "view: /explore?model=reverse-digits&text=3141"
TRUE = [
    'output = "1 4 1 3"',
    'source = "3 1 4 1"',
    'weight decoder.0.0.cross head 0 "3" → "3" > 0.5',
    'weight decoder.0.0.cross head 0 3 → "3" > 0.5',
    'weight decoder.0.0.cross head 0 after "1"#2 → 1 > 0.5',
    'score decoder.0.0.cross head 0 "4" → "4" > 0',
    'key decoder.0.0.cross head 0 "4" = "4"',
    'mask decoder.0.0.self 0 → 1 = "hidden"',
    'mask decoder.0.0.self 1 → 0 = "visible"',
    "entropy decoder.0.0.cross head 0 0 < 1",
    'mean decoder.0.0.cross head 0 "<eos>" < 0.5',
    'value decoder.0.0.cross head 0 "<eos>" > 0',
    'probability "4" at 1 > 0.99',
    'rank "4" at "4" = 1',
    "log-probability > -0.1",
    "loss < 0.1",
    'lens 0 at "4" = "4"',
    "padding weight = 0",
    "padding difference < 0.001",
    "breaks-at ≥ 0",
    "snapshot 0: loss > 1",
    "snapshot 53: measure antidiagonal decoder.0.0.cross head 0 < 0.5",
    "measure similarity decoder.0.0.cross head 0 = 1",
    "measure entropy decoder.0.0.cross head 0 < 2",
    'with {silence site=decoder.0.0.cross}: output ≠ "1 4 1 3"',
    "change with {silence site=decoder.0.0.cross}: log-probability < -1",
    'change with {silence site=decoder.0.0.cross}: probability "4" at 1 < -0.1',
    "measure previous decoder.0.0.self head 0 < 1",
    "measure first decoder.0.0.self head 0 < 1",
    "change with {silence site=decoder.0.0.cross}: measure largest decoder.0.0.self head 0 < 1",
    "survey coverage decoder.0.0.cross head 0 > 0.5",
    "share first decoder.0.0.self head 0 ≤ 100",
    'roles decoder.0.0.cross head 0 lacks "induction"',
]


def lines(*expects: str, view: str = DIGITS, more: str = "") -> str:
    return "\n".join([FRONT.rstrip("\n"), view, *(f"expect: {one}" for one in expects), more])


def problems(engine: Engine, text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.sentence) for problem in check(parser.read(text, "t.en"), engine)]


def test_what_is_true_passes(engine: Engine) -> None:
    assert problems(engine, lines(*TRUE)) == []


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ('output = "1 4 1"', "The run gives “1 4 1 3”"),
        ("survey coverage decoder.0.0.cross head 0 > 2", "not true"),
        ("survey next decoder.0.0.cross head 0 > 0", "is not defined for this head"),
        ("survey entropy decoder.0.0.cross head 3 > 0", "There is no head 3"),
        ("share entropy decoder.0.0.cross head 0 > 0", "no role uses the measure “entropy”"),
        ("snapshot 53: survey entropy decoder.0.0.cross head 0 > 0", "write no scope before it"),
        ('roles decoder.0.0.cross head 0 = "induction"', "not true"),
        ('weight decoder.0.0.cross head 0 "4" → "4" < 0.1', "not true"),
        ('weight decoder.0.0.cross head 7 "4" → "4" > 0.1', "There is no head 7"),
        ('weight decoder.0.9.cross head 0 "4" → "4" > 0.1', "no attention layer"),
        ('weight decoder.0.0.cross head 0 "4" → "9" > 0.1', "no token or row “9”"),
        ('weight decoder.0.0.cross head 0 "4"#2 → "4" > 0.1', "“4”#2"),
        ('probability "x" at 0 > 0', "no token “x”"),
        ('probability "4" at "9" > 0', "no step “9”"),
        ("snapshot 5: loss > 0", "reverse-digits@000005"),
        ('writes "encoder position" at 0 > 0', "the sum has no part “encoder position”; parts: decoder embedding"),
        (
            'why key "decoder position" decoder.0.0.cross head 0 "4" → "4" > 0',
            "no part “decoder position”; parts: encoder embedding",
        ),
        ('change with {silence site=decoder.0.0.self}: writes "decoder position" at 0 > 0', "use two claims"),
        ("with {silence site=decoder.0.0.cross head=3}: log-probability < 0", "head 3"),
    ],
)
def test_what_is_false_or_absent_is_named_with_its_line(engine: Engine, claim: str, said: str) -> None:
    [(line, sentence)] = problems(engine, lines('output contains "4"', claim))
    assert line == 9
    assert said in sentence


def test_claims_of_parts_are_terms_of_the_sums(engine: Engine) -> None:
    trace = engine.ask(Run(request := RunRequest("reverse-digits", "3141")))
    source, target = trace.tokens["source"].texts, trace.tokens["target"].texts
    row, key = target.index("4") - 1, source.index("4")
    score = engine.ask(Why(request, "decoder.0.0.cross", 0, row, key))
    one = list(map(str, score.parts_key)).index("encoder position")
    other = list(map(str, score.parts_query)).index("decoder position")
    logit = engine.ask(Writes(request, 1, "runner-up"))
    head = [str(part) for part in logit.parts].index("decoder.0.0.cross head 0")
    claims = (
        f'why key "encoder position" decoder.0.0.cross head 0 "4" → "4" = {score.matrix[:, one].sum():.4f}',
        f'why query "decoder position" decoder.0.0.cross head 0 "4" → "4" = {score.matrix[other].sum():.4f}',
        f'writes "decoder.0.0.cross head 0" at "4" = {logit.values[head]:.4f}',
        f'writes "decoder.0.0.cross head 0" at 1 > {logit.values[head] - 0.01:.4f}',
    )
    assert problems(engine, lines(*claims)) == []


@pytest.mark.parametrize("claim", ['why value "x" head 0 0 → 0 > 0', "why key x head 0 0 → 0 > 0", 'writes "x" > 0'])
def test_a_part_is_named_in_quotes(engine: Engine, claim: str) -> None:
    [(line, _sentence)] = problems(engine, lines(claim))
    assert line == 8


def test_claims_over_many_texts_are_those_of_the_stored_survey(engine: Engine) -> None:
    found = tables.read(CHECKPOINTS / "reverse-digits" / "survey.parquet")
    row, column = found.statistics.heads.index(("decoder.0.0.self", 0)), list(MEASURES).index("first")
    values = found.statistics.sampled[:, row, column]
    share = 100 * np.mean(values[np.isfinite(values)] >= 0.5)
    claims = (
        f"survey first decoder.0.0.self head 0 = {found.statistics.mean[row, column]:.4f}",
        f"share first decoder.0.0.self head 0 = {share:.2f}",
    )
    assert problems(engine, lines(*claims)) == []


@pytest.mark.parametrize("name", ["attention.en", "attention.de", "attention.zh-CN", "attention.zh-TW", "heads-are-born.en"])
def test_what_is_told_of_two_heads_over_many_texts_is_what_the_stored_film_measured(name: str) -> None:
    found = film.from_bytes((CHECKPOINTS / "induction" / "survey-film.parquet").read_bytes(), "survey-film.parquet")

    def mean(measure: str, step: int, site: str) -> float:
        row, column = found.heads.index((site, 1)), list(MEASURES).index(measure)
        assert found.count[:, row, column].min() == 100
        return float(found.mean[found.steps.index(step), row, column])

    told = (
        f"{mean('induction', 212, 'decoder.0.1.self'):.1f}",
        f"{mean('previous', 212, 'decoder.0.0.self'):.2f}",
        f"{mean('previous', 1009, 'decoder.0.0.self'):.2f}",
    )
    text = (library.BUNDLED / f"{name}.md").read_text(encoding="utf-8")
    (words,) = [part for part in text.replace(",", ".").split("\n\n") if "100" in part and "212" in part and "1.009" in part]
    assert re.findall(r"0\.\d+", words) == list(told)


@pytest.mark.parametrize("data", [b"", b"other"])
def test_a_claim_over_many_texts_needs_a_survey_of_these_weights(
    engine: Engine, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, stale = engine.ask, tables.read(CHECKPOINTS / "reverse-digits" / "survey.parquet")
    monkeypatch.setattr(tables, "from_bytes", lambda data, name: replace(stale, about=replace(stale.about, fingerprint="x")))
    monkeypatch.setattr(engine, "ask", lambda question: data if isinstance(question, StoredSurvey) else ask(question))
    [(_line, sentence)] = problems(engine, lines("survey coverage decoder.0.0.cross head 0 > 0"))
    assert ("belongs to other weights" if data else "no stored survey") in sentence


def test_a_model_that_is_still_being_opened_is_waited_for(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = engine.ask
    monkeypatch.setattr(engine, "ask", lambda question: Listing("", ()) if isinstance(question, Models) else ask(question))
    assert not problems(engine, lines(TRUE[0]))


def test_a_model_that_is_not_here_is_named(engine: Engine) -> None:
    found = problems(engine, lines(view="view: /explore?model=absent&text=1").replace("models: reverse-digits", "models: absent"))
    assert [line for line, _sentence in found] == [1, 7]
    assert all("absent" in sentence for _line, sentence in found)
    assert (
        "which the line models: at the top does not list"
        in problems(engine, lines().replace("models: reverse-digits", "models: wikitext2-lm"))[0][1]
    )


def test_a_link_to_a_head_or_stage_that_is_not_there_is_named(engine: Engine) -> None:
    assert "There is no head 3" in problems(engine, lines(view=f"{DIGITS}&head=3"))[0][1]
    assert "no stage" in problems(engine, lines(view=f"{DIGITS}&stage=decoder.0.5.self%2Fweights"))[0][1]


def test_points_lead_to_indices_of_the_run(engine: Engine) -> None:
    more = 'point: cell "4" → "4"\npoint: token target "3" — last\npoint: token source "9"\npoint: stage decoder.0.0.cross/weights'
    step = parser.read(lines(more=more), "t.en").steps[0]
    runs = StepRuns(engine, step)
    assert located(runs, step.points[0]) == Located("decoder.0.0.cross", 0, 1, 3)
    assert located(runs, step.points[1]) == Located(key=4, strip="target")
    assert [problem.line for problem in check_step(step, engine)] == [10]


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ('key decoder.0.0.cross head 0 "4"', "4"),
        ('weight decoder.0.0.cross "4" → "4"', "1"),
        ("token at 1", "4"),
        ('with {forbid key="4"}: output\noption: 1 4 1 3\noption: {now}', "{now}"),
    ],
)
def test_the_real_run_answers_a_question(engine: Engine, asked: str, right: str) -> None:
    now = "1 1 1 3"
    step = parser.read(lines(more=f"question: Which?\nanswer: {asked}".replace("{now}", now)), "t.en").steps[0]
    assert step.question is not None
    found = answer(StepRuns(engine, step), step.question)
    assert found.options[found.right] == right.replace("{now}", now)


def test_a_number_is_answered(engine: Engine) -> None:
    step = parser.read(lines(more="question: How large?\nanswer: number log-probability"), "t.en").steps[0]
    assert step.question is not None
    found = answer(StepRuns(engine, step), step.question).number
    assert found is not None
    assert -0.1 < found < 0


@pytest.mark.parametrize("name", sorted(library.files()))
def test_every_bundled_lecture_can_be_read(name: str) -> None:
    lecture = library.load(name)
    assert lecture.problems == ()
    assert all(step.page and step.expects for step in lecture.steps)


ENGLISH = sorted(name for name in library.files() if name.endswith(".en"))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(library.files()))
def test_every_claim_of_a_bundled_lecture_is_true_and_no_words_answer_a_question(engine: Engine, name: str) -> None:
    lecture = library.load(name)
    assert check(lecture, engine) == []
    assert not_drawn(lecture, engine) == [], "an empty picture, or labels that are cut"


def test_steps_for_a_model_that_is_not_always_there_take_the_place_of_others(engine: Engine) -> None:
    kept, other = lines(), lines(view="view: /explore?model=not-here")
    text = f"{kept}\nunless: not-here\n---\nneeds: not-here\n{other.split('---', 2)[2]}"
    found = parser.read(text, "t.en")
    assert models_here(found, engine) == frozenset()
    assert check(found, engine) == [], "what cannot be run here is no problem of the file"
    assert [step.view.model for step in found.shown_with(()).steps] == ["reverse-digits"]
    [shown] = found.shown_with({"not-here", "reverse-digits"}).steps
    assert (shown.view.model, shown.number) == ("not-here", 0)
    with pytest.raises(BadLecture, match="no step can be shown"):
        replace(found, steps=found.steps[1:]).shown_with(())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in sorted(library.files()) if any(step.needs for step in library.load(name).steps)])
def test_what_a_lecture_says_of_smollm2_is_true(engine: Engine, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(known_models.FOLDER, str(folder_of("smollm2").parent))
    whole = library.load(name)
    assert models_here(whole, engine) == {"smollm2"}
    held = whole.shown_with(models_here(whole, engine))
    assert len(held.steps) == len(whole.shown_with(()).steps), "one step stands for the other"
    own = replace(whole, models=(), steps=tuple(step for step in held.steps if step.needs))
    assert check(own, engine) == []
    assert not_drawn(own, engine) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Does it read 1?\nanswer: key decoder.0.0.cross head 0 2", "gives away the answer: “1”"),
        ("What is 0.98?\nanswer: number weight decoder.0.0.cross head 0 1 → 3", "gives away the answer: 0.98"),
        ("Which digit does the row *4* read?\nanswer: key decoder.0.0.cross head 0 2", "name the whole row, 4 → 1"),
        ('Which?\nanswer: key decoder.0.0.cross head 0 "1"', "“1” occurs 2 times"),
        ("Which?\nanswer: key decoder.0.0.cross head 0 2", ""),
        ("Which digit does the row *4 → 1* read?\nanswer: weight decoder.0.0.cross 2 → 2", ""),
    ],
)
def test_a_question_that_tells_or_is_ambiguous_is_named_with_its_line(engine: Engine, asked: str, said: str) -> None:
    step = parser.read(lines(more=f"question: {asked}"), "t.en").steps[0]
    number = StepRuns(engine, step).run().at("decoder.0.0.cross").weights[0, 1, 3]
    found = problems(engine, lines(more=f"question: {asked.replace('0.98', f'{number:.2f}')}"))
    assert [line for line, _sentence in found] == ([8] if said else [])
    assert not said or said.replace("0.98", f"{number:.2f}") in found[0][1]


def test_words_that_name_wrong_options_too_do_not_tell() -> None:
    asked = Question("", "key", (), Subject("key"), Scope(), 1)
    found = Answer(("<sos>", "spielt", "mann", "."), 1, (0.0, 0.9, 0.1, 0.0))
    assert list(_given_away(asked, found, "The row reads spielt.")) == ["“spielt”"]
    assert list(_given_away(asked, found, "Spielt or Mann?")) == []
    assert list(_given_away(asked, found, "mitspielt")) == []
    none = Answer(number=0.0)
    assert list(_given_away(asked, none, "It is exactly 0.")) == ["0"]
    assert list(_given_away(asked, none, "10 of 20, or 0.5")) == []


def test_an_empty_picture_and_cut_labels_are_named(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = parser.read(lines(view=f"{DIGITS}&head=0"), "t.en")
    assert not_drawn(digits, engine) == []
    long = "view: /explore?model=multi30k-de-en&site=encoder.0.0.self&head=1&text=Ein+Weihnachtsmannkost%C3%BCm."
    cut = [problem.sentence for problem in not_drawn(parser.read(lines(view=long), "t.en"), engine)]
    assert cut == [f"labels cut at {window}: 1, such as weihnachtsmannkostüm" for window in ("1024×768", "1440×900")]
    trace = StepRuns(engine, digits.steps[0]).run()
    changes, _left_out = run_difference.changes(trace, trace)
    atlas = difference.scene(trace, trace, changes, trace.last_cross().site, 0)
    strips = attention.strips(trace, trace.last_cross().site, -1)
    for panel, scene, empty in (
        (PicturePanel("Atlas", "changes"), atlas, True),
        (PicturePanel("Table", "none"), scene_of(Table(pd.DataFrame(columns=["a"])))[1], True),
        (PicturePanel("Strips", "strips"), strips, False),
    ):
        drawn = Picture([panel], {panel.scene: scene}, {}, {})
        monkeypatch.setattr(command, "picture", lambda *_asked, drawn=drawn: drawn)
        said = [problem.sentence for problem in not_drawn(digits, engine)]
        assert [sentence.startswith("the picture of this step is empty") for sentence in said] == [True] * empty


def test_a_comparison_without_a_change_shows_the_hypotheses_or_the_heads(engine: Engine) -> None:
    links = (
        "model=multi30k-de-en&text=Ein+Hund+bei%C3%9Ft+den+Mann.&against=decode%3Dbeam",
        "model=reverse-digits&text=3141&against=text%3D1413",
        "model=reverse-digits&text=3141&against=text%3D3141",
    )
    steps = [parser.read(lines(view=f"view: /compare?{link}"), "t.en").steps[0] for link in links]
    kinds = [[panel.kind for panel in picture(engine, step.page, step.view).panels] for step in steps]
    assert kinds == [["Strips", "Strips", "Strips", "Tree"], ["Strips", "Lines", "Lines"], ["Strips", "Strips", "Strips", "Atlas"]]


def test_the_bundled_lectures_are_as_long_as_they_say() -> None:
    lectures = {name: library.load(name) for name in ENGLISH}
    assert lectures["attention.en"].minutes == 90
    assert len(lectures["attention.en"].steps) >= 30
    assert len(lectures["attention.en"].chapters) >= 8
    assert (lectures["today.en"].minutes, len(lectures["today.en"].shown_with(()).steps)) == (90, 40)
    assert sum(step.question is not None for step in lectures["today.en"].steps) == 10
    assert {lectures[name].minutes for name in ("masks.en", "heads-are-born.en")} == {15}


@pytest.mark.parametrize("name", sorted(set(library.files()) - set(ENGLISH)))
def test_a_translation_has_the_same_steps_with_sentences_that_fit_its_readers(name: str) -> None:
    own, english = library.load(name), library.load(f"{name.rpartition('.')[0]}.en")
    assert set(own.models) == set(english.models)
    assert len(own.chapters) == len(english.chapters)
    assert len(own.steps) == len(english.steps)
    assert all(step.expects for step in own.steps)


def test_the_command_names_problems_by_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, good = tmp_path / "t.en.md", tmp_path / "good.en.md"
    path.write_text(lines('output = "9"'), encoding="utf-8")
    good.write_text(lines('output = "1 4 1 3"'), encoding="utf-8")
    with pytest.raises(SystemExit, match="1"):
        main(["lecture", "check", str(path), str(good)])
    told = capsys.readouterr()
    assert f"{path}:8: not true" in told.err
    assert "good.en.md: steps 1, claims 1, problems 0" in told.out
    with pytest.raises(SystemExit, match="0"):
        main(["lecture", "check", str(good)])
    with pytest.raises(SystemExit, match="1"):
        main(["lecture", "check", str(tmp_path / "absent.md")])
