"""The benchmarks tell medians and ratios; what they measure is measured by running them."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
import torch
from click.testing import CliRunner

from benchmarks import (
    aims,
    alternatives,
    batching,
    decoding,
    devices,
    drawing,
    growth,
    images,
    known,
    load,
    peers,
    runs,
    sound,
    timing,
    training,
    whatif,
)
from benchmarks.__main__ import PARTS, machine, main
from benchmarks.alternatives import Case, Shown
from benchmarks.browsers import NoBrowser, chromium
from benchmarks.load import badly_behaved
from benchmarks.load.badly_behaved import Measured
from benchmarks.made_up import weights
from benchmarks.peers import TooMuch
from benchmarks.timing import Row
from benchmarks.visiting import Visit
from model.checkpoints import loader
from model.engine.local import LocalEngine
from model.features.training import recipes
from model.huggingface.loaded import Foreign
from model.requests.network import ModelSpec
from model.trace import serialization
from model.trace.lazy_attention import LazyAttention
from tests.networks import VARIANTS, save_checkpoint, tiny_recipe, translator

ROOT = Path(__file__).parents[1]


def test_a_ratio_is_the_median_of_the_turns_and_not_the_ratio_of_medians() -> None:
    assert timing.ratio([2.0, 30.0, 4.0], [1.0, 10.0, 2.0]) == 2.0


def test_cases_run_in_turns_and_the_first_turn_does_not_count() -> None:
    clock, order = [0.0], []

    def taking(name: str, seconds: list[float]) -> None:
        order.append(name)
        clock[0] += seconds.pop(0)

    a, b = [99.0, 0.5, 1.0, 0.25], [99.0, 1.0, 3.0, 0.5]
    rows = timing.in_turns({"a": lambda: taking("a", a), "b": lambda: taking("b", b)}, repeats=3, clock=lambda: clock[0])
    assert "".join(order) == "abababab"
    assert rows == [timing.Row("a", 500.0), timing.Row("b", 1000.0, ratio=2.0)]


def test_what_is_short_is_measured_more_often() -> None:
    clock, order = [0.0], []

    def taking() -> None:
        order.append(1)
        clock[0] += 0.5

    timing.in_turns({"a": taking}, repeats=2, seconds=3.0, clock=lambda: clock[0])
    assert len(order) == 1 + 6


def test_the_table_is_markdown() -> None:
    table = timing.table([timing.Row("slow", 12.34), timing.Row("slower", 20.0, 1.62, "of slow")])
    assert table.splitlines()[2:] == ["| slow | 12.3 |  |  |", "| slower | 20.0 | 1.62 × | of slow |"]
    cut = timing.table([timing.Row("never", 60_000.0, 71.2, "cut", least=True)])
    assert cut.splitlines()[2:] == ["| never | > 60,000.0 | > 71.20 × | cut |"]


def test_without_a_browser_a_sentence_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoBrowser, match="install one, for instance `apt install chromium`"):
        chromium()


def test_training_counts_the_tokens_that_are_predicted() -> None:
    tiny = tiny_recipe()
    longer = {**tiny.decoder, "max_positions": 32}
    recipe = replace(tiny, encoder=longer, decoder=longer)
    tokens, seconds = training.steps(recipe, "cpu", repeats=2)
    batch = training.made_up(recipe.optimisation.sentences_per_batch)
    assert tokens == sum(len([i for i in row if i != 1]) - 1 for row in batch.target.tolist())
    assert seconds > 0


def test_a_whole_training_is_told_with_its_time() -> None:
    recipe = recipes.load("reverse-digits")
    phases = (replace(recipe.optimisation.phases[0], epochs=1),)
    row = training.whole(
        replace(recipe, data=recipe.data | {"strings": 100}, optimisation=replace(recipe.optimisation, phases=phases))
    )
    assert row.case == "reverse-digits, trained from nothing on the CPU"
    assert row.milliseconds > 0
    assert re.fullmatch(r"\d+ s of CPU time", row.note)


def test_the_options_and_parts_are_documented() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert isinstance(main, click.Command)
    assert all(f"`{option} " in page for parameter in main.params for option in parameter.opts)
    assert all(f"**{part}.**" in page for part in PARTS)


def test_what_takes_long_is_measured_once_and_what_cannot_be_done_is_told() -> None:
    calls: list[str] = []

    def taking(name: str, seconds: float) -> alternatives.Turn:
        def once(_: object) -> Shown:
            calls.append(name)
            if seconds > 60:
                raise TooMuch("> 60 s")
            return Shown(1.0, seconds - 1, 0.5)

        return once

    turns = {alternatives.OURS: taking("a", 2.0), "slow": taking("b", 20.0), "never": taking("c", 99.0)}
    tried, hopeless = list(peers.NAMES.values())[:2]
    turns |= {tried: taking("d", 0.5), hopeless: taking("e", 1.0)}
    case, known = Case(1, 2, 10), {hopeless: drawing.Known(1.0)}
    shown = drawing._measured(case, turns, known, None, 3)  # type: ignore[arg-type]  # no browser is needed here
    rows = {row.case: row for row in shown}
    assert "".join(calls) == "abcdadad"
    assert rows["1 × 2 × 10: slow"].ratio == 10.0
    assert rows["1 × 2 × 10: never"] == Row("1 × 2 × 10: never", 60_000.0, 30.0, "cut", least=True)
    assert rows[f"1 × 2 × 10: {hopeless}"].note == "not tried: about 3 min, if time grew like the cells"
    assert known == {hopeless: drawing.Known(1.0), tried: drawing.Known(0.5 / 200)}


def test_a_peer_that_was_cut_is_tried_at_smaller_cases_alone() -> None:
    name = next(iter(peers.NAMES.values()))

    def cut(_: object) -> Shown:
        raise TooMuch("> 60 s")

    known = {name: drawing.Known(0.001)}
    list(drawing._measured(Case(1, 2, 100), {name: cut}, known, None, 3))  # type: ignore[arg-type]  # no browser is needed here
    assert known == {name: drawing.Known(0.001, Case(1, 2, 100))}
    assert known[name].why_not(Case(2, 2, 100)) == "not tried: it could not do 1 × 2 × 100"
    assert known[name].why_not(Case(1, 1, 100)) == ""
    assert known[name].why_not(Case(1, 1, 130)) == ""


def test_what_is_left_of_ours_without_streamlit_is_of_the_same_turn() -> None:
    shown: drawing.Turns = {
        alternatives.OURS: [Shown(0, 2.0, 0.5), Shown(0, 9.0, 0.5), Shown(0, 3.0, 0.5)],
        alternatives.EMPTY: [Shown(0, 1.0, 0.0), Shown(0, 8.0, 0.0), Shown(0, 1.5, 0.0)],
    }
    rows = {row.case: row for row in drawing._rows("x", shown)}
    assert rows[f"x: {drawing.LESS}"].milliseconds == 1000


def test_pages_are_compared_with_our_page_and_not_with_the_whole_tab() -> None:
    cut, untried, done = list(peers.NAMES.values())[:3]
    shown: drawing.Turns = {
        alternatives.OURS: [Shown(0, 9.0, 0.5)] * 3,
        alternatives.PAGE: [Shown(0.5, 0.5, 0.5), Shown(1.0, 1.0, 0.5), Shown(0.5, 1.0, 0.5)],
        done: [Shown(0, 3.0, 1.0), Shown(0, 4.0, 1.0), Shown(0, 6.0, 1.0)],
        cut: f"> {peers.SECONDS} s",
        untried: "not tried",
    }
    rows = {row.case: row for row in drawing._rows("x", shown)}
    assert rows[f"x: {done}: {drawing.TIMES}"].ratio == 3
    assert rows[f"x: {cut}: {drawing.TIMES}"] == Row(f"x: {cut}: {drawing.TIMES}", 60_000.0, 40.0, "cut", least=True)
    assert f"x: {untried}: {drawing.TIMES}" not in rows


def test_our_page_is_made_anew_of_a_run_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    def visited(browser: object, address: str, there: str) -> Visit:
        seen.append(address)
        return Visit(2.0, 1.0, 0, 0)

    monkeypatch.setattr(alternatives, "visit", visited)
    turns = alternatives.others(Case(2, 2, 300, 250), tmp_path, "http://here")
    assert list(turns)[:2] == [alternatives.PAGE, alternatives.PAGE_WRITTEN]
    assert alternatives.PAGE_WRITTEN not in alternatives.others(Case(2, 2, 128), tmp_path, "")
    for name in list(turns)[:2]:
        shown = turns[name](None)  # type: ignore[arg-type]  # no browser is needed here
        assert shown.browser == 2.0
        assert shown.python > 0
        assert shown.megabytes == (tmp_path / "ours.html").stat().st_size / 1e6
    assert seen == ["http://here/ours.html"] * 2


def test_aims_tell_what_was_measured_and_whether_it_is_met() -> None:
    def line(aim: aims.Aim, *rows: Row) -> tuple[str, ...]:
        return aim.line(rows)[1:]

    most = aims.Aim("x", "a", "milliseconds", 500, "ms")
    assert line(most, Row("ab", 1), Row("a", 412.3)) == ("≤ 500 ms", "412 ms", "yes")
    assert line(most, Row("a", 512.0)) == ("≤ 500 ms", "512 ms", "**no**")
    assert line(most, Row("b", 1)) == ("≤ 500 ms", "not measured", "")
    least = aims.Aim("x", "a…", "ratio", 60, least=True)
    assert line(least, Row("a peer", 6e4, 71.0, "cut", least=True)) == ("≥ 60 ×", "> 71 ×", "yes")
    assert line(least, Row("a peer", float("nan"), note="> 8 GB")) == ("≥ 60 ×", "> 8 GB", "yes")
    assert line(least, Row("a peer", float("nan"), note="not tried")) == ("≥ 60 ×", "not tried", "")
    slower = aims.Aim("x", "a", "slower", 1.5)
    assert line(slower, Row("a", 1.0, 0.8)) == ("≤ 1.5 ×", "1.25 ×", "yes")
    told = aims.Aim("x", "a", "milliseconds", None, "ms")
    assert line(told, Row("a", 7.0)) == ("", "7 ms", "")


def test_every_aim_names_a_row_that_a_part_can_yield() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "aims")
    for name in (aim.row.rstrip("…").rpartition(": ")[2] for aim in aims.AIMS):
        longest = max(re.split(r"\d[\d,]*|(?:head|layer|kind)$", name), key=len)
        assert longest in sources, f"no part of the benchmarks says {longest!r}, which an aim looks for"


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_power_by_which_something_grows_is_found(exponent: float) -> None:
    points = [growth.Point(size, 3.0 * size**exponent, 1.0, 0.1 * size) for size in (32, 64, 128, 256)]
    assert growth.power(points, "megabytes") == pytest.approx(exponent)
    assert growth.power(points, "server") == pytest.approx(0, abs=1e-9)
    *sizes, last = growth.rows("ours", "tokens", points)
    assert [row.case for row in sizes][:2] == ["32 tokens: ours", "64 tokens: ours"]
    assert last.case == "ours: powers of tokens, 32 … 256"
    assert last.note.startswith(f"megabytes {exponent:.2f}, server ")
    assert last.note.endswith("0.00, browser 1.00")


@pytest.mark.parametrize("written", [True, False])
def test_runs_have_the_weights_that_peers_draw(written: bool, tmp_path: Path) -> None:
    trace = runs.encoder(2, 3, 16, valid=11, written=written)
    read = serialization.from_bytes(runs.write(trace, tmp_path / "a.trace.safetensors").read_bytes())
    maps = np.concatenate([attention.weights[:] for attention in read.attention.values()])
    np.testing.assert_allclose(maps, weights(2, 3, 16, valid=11), atol=1e-6)
    assert all(isinstance(a.weights, LazyAttention) is not written for a in read.attention.values())
    assert not trace.at("encoder.0.0.self").mask[:, 11:].any()


def test_a_run_of_a_translation_has_all_kinds() -> None:
    trace = runs.translation(2, 3, 8)
    assert len(trace.attention) == 6
    assert {(a.query_tokens, a.key_tokens) for a in trace.attention.values()} == {
        ("source", "source"),
        ("target", "target"),
        ("target", "source"),
    }


def test_the_machine_is_told_where_there_is_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert re.match(r"\d+ \w+ \d{4}, .+ cores, .+, Python 3\.\d+\.\d+, torch .+, no browser$", machine())


def test_what_is_printed_is_written_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(PARTS, "decoding", lambda repeats: iter([Row("30 tokens, the beginning read anew", 9.0, 4.5)]))
    monkeypatch.setattr("benchmarks.__main__.machine", lambda: "a machine")
    page, numbers = tmp_path / "a.md", tmp_path / "a.json"
    done = CliRunner().invoke(main, ["--only", "decoding", "--markdown", str(page), "--json", str(numbers)])
    assert done.exit_code == 0, done.output
    assert page.read_text(encoding="utf-8").strip() == done.stdout.strip()
    assert "| decoding by reading the whole prefix again, times cached | ≥ 3 × | 4.5 × | yes |" in done.output
    assert json.loads(numbers.read_text(encoding="utf-8"))["decoding"][0]["ratio"] == 4.5


def test_a_part_that_ends_early_keeps_what_it_measured_and_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(repeats: int) -> Iterator[Row]:
        yield Row("measured before", 7.0)
        raise TooMuch("> 60 s")

    def another(repeats: int) -> Iterator[Row]:
        yield Row("another", 8.0)
        click.echo("the part goes on", err=True)

    monkeypatch.setitem(PARTS, "decoding", busy)
    monkeypatch.setitem(PARTS, "training", another)
    monkeypatch.setattr("benchmarks.__main__.machine", lambda: "a machine")
    done = CliRunner().invoke(main, ["--only", "decoding", "--only", "training"])
    assert "The part decoding ended early: > 60 s." in done.output
    assert "| measured before | 7.0 |" in done.output
    assert "| another | 8.0 |" in done.output
    told = [line for line in done.stderr.splitlines() if line]
    assert [line.partition(": ")[2] for line in told if ", after " in line] == [
        "| measured before | 7.0 |  |  |",
        "| another | 8.0 |  |  |",
    ]
    assert told[-1] == "the part goes on", "a row is told at once, and not at the end of its part"


def test_each_load_test_is_announced_before_it_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("of_a_class", "of_runs", "of_the_badly_behaved", "of_a_soak"):
        monkeypatch.setattr(load, name, lambda name=name: iter([Row(name, 1.0)]))
    for row in load.measure(1):
        (announced,) = capsys.readouterr().err.splitlines()
        assert announced.startswith("load: ")
        assert "minute" in announced, row.case


def test_made_up_attention_is_attention() -> None:
    made = weights(2, 3, 16, valid=11)
    assert made.shape == (6, 16, 16)
    np.testing.assert_allclose(made.sum(-1), 1, atol=1e-5)
    assert not made[:, :, 11:].any()


def test_decoding_with_and_without_a_cache_writes_the_same() -> None:
    stack = replace(VARIANTS["paper"].writer, vocab=40, max_positions=40)
    network = translator(ModelSpec(encoder=stack, decoder=stack))
    with_cache, without = (decoding.decode(network, cached) for cached in (True, False))
    assert decoding.decode(network, True, decoding.Unhooked) == with_cache
    assert with_cache == without
    assert len(with_cache) == decoding.TOKENS


def test_requests_at_once_are_answered_as_one_by_one_and_nothing_is_kept(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny")
    engine = LocalEngine(tmp_path, torch.device("cpu"), cache_bytes=0)
    asked = batching.requests(engine, "tiny", 5)
    assert len(set(asked)) == 5
    once, single = batching.at_once(engine, asked), batching.one_by_one(engine, asked)
    for request, one, other in zip(asked, once, single, strict=True):
        assert one.tokens["source"].ids == request.source
        assert one.tokens == other.tokens
        assert one is not other
    engine.scheduler.close()


@pytest.mark.slow
def test_batching_tells_both_ways_on_every_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path / "tiny")
    monkeypatch.setattr(batching, "devices", lambda: [torch.device("cpu")])
    before = torch.get_num_threads()
    rows = list(batching.measure(1, tmp_path, "tiny", (1, 3)))
    torch.set_num_threads(before)
    assert [row.case.split(", CPU")[0] for row in rows] == ["1 request one by one", "3 requests one by one", "3 requests at once"]
    assert all(row.note.endswith(" requests a second") for row in rows)
    assert [row.ratio is None for row in rows] == [True, True, False]


@pytest.mark.slow
def test_what_mattered_is_told_as_multiples_of_one_forced_run(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny")
    before = torch.get_num_threads()
    rows = list(whatif.measure(1, tmp_path, "tiny", "w4 w5 w6"))
    torch.set_num_threads(before)
    assert rows[0].case == whatif.FORCED
    assert rows[0].ratio is None
    assert all(row.ratio for row in rows[1:])
    assert {whatif.WITHOUT, whatif.PRUNE} <= {row.case for row in rows}


@pytest.mark.slow
def test_a_device_is_waited_for_and_one_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = torch.get_num_threads()
    decoded, missing = devices.measure(1)
    torch.set_num_threads(before)
    assert decoded.case == f"{decoding.TOKENS} tokens, cached, cpu"
    assert decoded.note.endswith(" tokens a second")
    assert missing.note == "there is none here"


def test_recording_is_told_for_any_device(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = replace(VARIANTS["paper"].writer, vocab=40, max_positions=40)
    monkeypatch.setattr("benchmarks.recording.SPECS", {"tiny": ModelSpec(encoder=stack, decoder=stack)})
    monkeypatch.setattr("benchmarks.recording.LENGTHS", (9,))
    rows = list(devices.recorded(torch.device("cpu"), 1))
    assert [row.case for row in rows] == [
        f"cpu: tiny, 9 tokens, {how}" for how in ("fused, recording nothing", "as the app records", "everything")
    ]


def test_the_rows_of_the_badly_behaved_are_those_of_the_page_about_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Measured(idle=[0.1] * 20, beside=[0.2] * 19 + [0.9], replies={"long_text": Counter({422: 60})})
    monkeypatch.setattr(badly_behaved, "measure", lambda: found)
    alone, beside, longest = load.of_the_badly_behaved()
    assert alone.case == "cached runs alone, p95"
    assert alone.milliseconds == pytest.approx(100)
    assert beside.case == "cached runs beside badly behaved visitors, p95"
    assert beside.ratio == pytest.approx(beside.milliseconds / alone.milliseconds)
    assert "20 runs beside 60 bad requests" in beside.note
    assert longest.milliseconds == pytest.approx(900)
    assert longest.note == "aim ≤ 1.5 s"


@pytest.mark.slow
def test_a_known_model_is_measured_beside_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests import folders

    folders.save(tmp_path, "llama", vocab_size=300, max_position_embeddings=120)
    folders.byte_pairs().save(str(tmp_path / "tokenizer.json"))
    monkeypatch.setattr(known, "LENGTHS", (3, 20))
    monkeypatch.setattr(known, "HELD", ())
    rows = {row.case: row for row in known.measure(1, tmp_path)}
    for case in (known.OPENING, "3 tokens fed", "20 tokens fed", known.PICTURE, known.DECODING):
        assert (rows[case].ratio or 0) > 0
    assert len(rows) == 2 * 5


@pytest.mark.slow
def test_a_sound_is_measured_beside_the_library_and_both_do_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"vocab_size": 90, "d_model": 16, "encoder_layers": 1, "decoder_layers": 3, "encoder_attention_heads": 2}
    more = {"decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "max_target_positions": 60}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None}
    monkeypatch.setattr(sound, "SIZES", sizes | more | ids | {"begin_suppress_tokens": None})
    rows = {row.case: row for row in sound.measure(1)}
    assert all((rows[case].ratio or 0) > 0 for case in (sound.FEEDING, sound.WRITING))
    assert len(rows) == 5
    folder = sound.saved(tmp_path)
    library, prepare, heard = sound.opened(folder), sound.extractor(folder), sound.noise()
    ours = loader.load(folder, {}, sound.CPU)
    assert isinstance(ours, Foreign)
    fed, own = sound.recorded(ours, sound.sent(heard)), sound.fed(library, prepare, heard)
    assert fed.logits is not None
    np.testing.assert_allclose(fed.logits, own.logits[0].numpy(), atol=1e-4)
    written = sound.recorded(ours, sound.sent(heard), sound.WRITTEN)
    other = sound.written(library, prepare, heard)[0].tolist()
    assert list(written.tokens["target"].ids[-sound.WRITTEN :]) == other[-sound.WRITTEN :]


@pytest.mark.slow
def test_both_sides_write_as_many_tokens(tmp_path: Path) -> None:
    from tests import folders

    folders.save(tmp_path, "llama", vocab_size=200, max_position_embeddings=80)
    ids = known.text(12, 200)
    trace = known.recorded(known.load(tmp_path), ids, known.WRITTEN)
    other = known.written(folders.network("llama", vocab_size=200, max_position_embeddings=80), ids)
    assert trace.tokens["source"].ids == tuple(other[0].tolist())
    assert len(trace.steps) == known.WRITTEN


def test_images_are_read_beside_the_library_with_equal_maps(tmp_path: Path) -> None:
    size = images.Size("small", 2, 2, 16, (32, 8))
    rows = list(images.measure(1, (size,)))
    assert [row.case for row in rows] == ["small, the library", "small"]
    assert rows[1].ratio is not None
    for kind in ("vit", "clip", "siglip"):
        size = replace(size, kind=kind)
        images.save(tmp_path / kind, size)
        wanted = images.seen(images.opened(tmp_path / kind, size), images.prepares(size)).attentions
        opened = loader.load(tmp_path / kind, {}, images.CPU)
        assert isinstance(opened, Foreign)
        trace = images.recorded(opened)
        for attention, map_ in zip(trace.attention.values(), wanted, strict=True):
            np.testing.assert_allclose(attention.weights, map_[0].numpy(), rtol=0, atol=1e-6)


def test_a_caption_is_fed_and_written_beside_the_library(tmp_path: Path) -> None:
    size = images.Size("small", 2, 2, 16, (32, 8), "blip")
    images.save(tmp_path, size)
    library, processor, opened = images.opened(tmp_path, size), images.prepares(size), loader.load(tmp_path, {}, images.CPU)
    assert isinstance(opened, Foreign)
    trace, written = images.recorded(opened), images.recorded(opened, images.TOKENS)
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, images.seen(library, processor).logits[0], rtol=0, atol=1e-6)
    assert len(written.steps) == images.seen(library, processor, images.TOKENS).shape[1] - 1 == images.TOKENS
