"""Dependencies and heads against plain computations, word by word; and where they are kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.engine.local import LocalEngine
from model.features.survey import tables
from model.features.survey.questions import MeasuredTexts, MeasureTexts, Text
from model.features.survey.relations import DIRECTIONS, Relations, accuracies, relations_of
from model.features.survey.survey import begun, gone_on
from model.features.survey.texts import Texts, read
from model.trace.types import Trace
from tests.networks import save_checkpoint
from tests.traces import translation

TOKENS = "<sos> der klein ##e hund spiel ##t im schnee . <eos>".split()
SOURCE = "der kleine hund spielt im schnee ."
WORD_OF = [-1, 0, 1, 1, 2, 3, 3, 4, 5, 6, -1]
TREE = "DET:3:det ADJ:3:amod NOUN:4:nsubj VERB:0:root ADP:6:case NOUN:4:obl PUNCT:4:punct"
HEADS = [2, 2, 3, -1, 5, 3, 3]
NAMES = [entry.split(":")[2] for entry in TREE.split()]


def trace(seed: int = 3, causal: bool = False) -> Trace:
    found = translation(TOKENS, ["<sos>", "a"], layers=2, heads=2, seed=seed)
    if not causal:
        return found
    mask = np.tri(len(TOKENS), dtype=bool)
    own = {
        site: replace(each, mask=mask, weights=np.where(mask, each.weights, 0)) if site.stack == "encoder" else each
        for site, each in found.attention.items()
    }
    return replace(found, attention=own)


def between(own: Trace, site: str, head: int, row: int, key: int) -> tuple[float, bool]:
    """The weight of one word on another one, and whether it may have any: a mean over its tokens, a sum over those of the other."""
    at = own.at(site)
    rows = [place for place, word in enumerate(WORD_OF) if word == row]
    keys = [place for place, word in enumerate(WORD_OF) if word == key]
    weights = [sum(float(at.weights[head, r, k]) for k in keys) for r in rows]
    return sum(weights) / len(weights), any(at.mask[r, k] for r in rows for k in keys)


@pytest.mark.parametrize("causal", [False, True])
def test_each_head_is_counted_as_a_person_would_count_it(causal: bool) -> None:
    own = trace(causal=causal)
    found = relations_of(own, SOURCE, TREE)
    assert found is not None
    assert set(found.by_name) == set(NAMES) - {"root"}
    heads = [(str(site), head) for site, each in own.attention.items() for head in range(each.heads)]
    for place, (site, head) in enumerate(heads):
        for way in range(2):
            for name, counted in found.by_name.items():
                right, words, offsets = 0, 0, []
                for word, governor in enumerate(HEADS):
                    if NAMES[word] != name or not site.startswith("encoder"):
                        continue
                    others = [other for other in range(7) if other != word]
                    cells = [between(own, site, head, *((word, o) if way == 0 else (o, word))) for o in others]
                    there = {o: weight for o, (weight, allowed) in zip(others, cells, strict=True) if allowed}
                    if governor in there and len(there) >= 2:
                        words += 1
                        right += max(there, key=there.__getitem__) == governor
                        offsets.append(governor - word)
                assert counted.right[place, way] == right
                at = list(own.attention).index(own.at(site).site)
                assert counted.words[at, way] == words
                assert counted.offsets[at, way].sum() == words
                assert all(counted.offsets[at, way, 16 + offset] >= 1 for offset in offsets)


def test_the_best_head_stands_beside_the_best_fixed_offset() -> None:
    total = relations_of(trace(0), SOURCE, TREE)
    for seed in (1, 2):
        more = relations_of(trace(seed), SOURCE, TREE)
        assert total is not None
        assert more is not None
        total = total + more
    assert total is not None
    sites = {str(site): own.heads for site, own in trace().attention.items()}
    found = {(each.relation, each.direction): each for each in accuracies(total, sites)}
    assert len(found) == 6 * len(DIRECTIONS)
    for (name, direction), each in found.items():
        own, way = total.by_name[name], DIRECTIONS.index(direction)
        assert each.words == 3
        assert each.right == pytest.approx(own.right[:4, way].max() / 3)
        assert own.right[each.head, way] == own.right[:4, way].max()
        assert each.baseline == 1.0  # each relation is here once, at one distance
    assert found["obl", DIRECTIONS[0]].offset == -2
    assert [each.head for each in accuracies(total, sites, head=2)] == [2] * 12
    assert accuracies(total, sites, head=5) == []  # of the decoder


def test_a_head_that_always_looks_at_the_next_word_is_as_good_as_that_offset() -> None:
    own = trace()
    encoder = next(iter(own.attention))
    shifted = np.zeros_like(own.at(encoder).weights)
    for row in range(len(TOKENS)):
        shifted[:, row, min(row + 1, len(TOKENS) - 1)] = 1
    own = replace(own, attention={**own.attention, encoder: replace(own.at(encoder), weights=shifted)})
    found = relations_of(own, SOURCE, TREE)
    assert found is not None
    sites = {str(site): each.heads for site, each in own.attention.items()}
    assert {each.relation: each.right for each in accuracies(found, sites, head=0) if each.direction == DIRECTIONS[0]} == {
        "det": 0.0,
        "amod": 1.0,
        "nsubj": 1.0,
        "case": 1.0,
        "obl": 0.0,
        "punct": 0.0,
    }


def test_a_text_without_a_parse_or_with_other_words_has_no_counts() -> None:
    assert relations_of(trace(), SOURCE, "") is None
    assert relations_of(trace(), (1, 2), TREE) is None
    assert relations_of(trace(), SOURCE.replace("hund", "mann"), TREE) is None


CONLLU = "1\tw4\t_\tNOUN\t_\t_\t2\tnsubj:pass\t_\t_\n2\tw5\t_\tVERB\t_\t_\t0\troot\t_\t_\n3\tw6\t_\tNOUN\t_\t_\t2\tobj\t_\t_\n\n"


def test_a_survey_adds_them_up_and_keeps_them(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny")
    engine, question = LocalEngine(tmp_path, torch.device("cpu")), MeasureTexts("tiny", texts=())
    texts = read(CONLLU * 3 + CONLLU.replace("w6", "w7"), "mine.conllu")
    answer = engine.ask(replace(question, texts=texts.items))
    assert answer.relations is not None
    sent = MeasuredTexts.from_bytes(answer.to_bytes()).relations
    assert sent is not None
    assert {name: array.tolist() for name, array in sent.arrays().items()} == {
        name: array.tolist() for name, array in answer.relations.arrays().items()
    }
    *_, found = gone_on(engine.ask, question, texts, begun(question, texts))
    assert found.relations is not None
    assert found.relations.by_name["nsubj:pass"].words[0].tolist() == [4, 4]
    tables.write(found, tmp_path / "s.parquet")
    again = tables.read(tmp_path / "s.parquet")
    assert again.to_json() == found.to_json()
    assert {each["relation"] for each in again.to_json()["relations"]} == {"nsubj:pass", "obj"}
    plain = Texts("plain", (Text("w4 w5 w6"),))
    *_, other = gone_on(engine.ask, question, plain, begun(question, plain))
    assert other.relations is None
    assert "relations" not in other.to_json()
    assert Relations.of({}).by_name == {}
