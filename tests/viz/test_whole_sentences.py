"""A sentence is whole in the catalogue: nothing translated stands among its words, and what can be searched for is not said."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from babel.messages import pofile

from tests.whole_sentences import among_words
from viz.i18n import translate

ROOT = Path(__file__).parents[2]
TELLING = {"_", "_n", "translated", "phrase"}
PATTERNS: dict[str, dict[str, str]] = {
    "en": {
        r"\d[ \u00a0\u202f]%|\}[ \u00a0\u202f]%": "12%, without a space",
        r"\b[Tt]he page [A-Z]": "the Checkpoint page",
        r"\bhas \{size": "is 300 MB",
        r"\bis none of\b": "is not one of",
        r"\b(is|are) left out\b": "is ignored, is omitted",
        r"\bmasked from later": "is prevented from attending to later ones",
        r"\bnot here: nothing\b|\bmakes? no sense\b|\babsurd\b": "a reason that can be checked",
        r"\b(one|1) (heads|tokens|rows|steps|layers)\b": "a singular",
        r"(?<!\{)\b(site|strip)s?\b(?! ?[=/]| of its own)": "attention layer; source tokens",
        r"\bthere is: ": "Available:",
        r"\bby more than rounding\b": "more than the rounding error",
        r"\b[Cc]losed (token|cell|key)|\b[Oo]pen (cells?|keys?)\b|\bclosed to all\b": "masked, allowed",
        r"\bheads? of (queries|keys)\b": "query head, key and value head",
        r"\bknobs?\b": "slider",
    },
    "de": {
        r"\d %|\} %": "ein geschütztes Leerzeichen vor %",
        r"\btrainiert auf\b": "trainiert mit",
        r"\b(Englisch|Deutsch) (nennt|sagt|braucht)\b": "Das Englische nennt",
        r"mehr als Rundung": "über Rundungsfehler hinaus",
        r"\bhat \{size:,\.0f\} MB": "ist 300 MB groß",
        r" mal Heads| mal Eingabe": "×",
        r"Dekod|dekod|Lektion|Lesart|Stapel|rotierende|Attention-Karte": "docs/glossary.md",
        r"\b(du|dein|deine|Sie haben|Ihre [A-Z])\b": "ohne Anrede",
        r"[\"“][^„“”\"]{1,40}”": "„…“",
        r"\b\w+en Sie\b|\b(Zeige|Tippe|Klicke|Wähle|nenne)\b": "ohne Anrede",
        r"\bQueries\b": "Querys",
        r"\b(keine|mehrere|viele|besonderen?|denselben) Token\b": "Tokens",
        r"\b[Bb]itte\b": "der Infinitiv allein: Den Text kürzen.",
        r"\b[Bb]lickt(e|en)?\b|\bTipp\b|sagt warum": "schaut; Antippen; nennt den Grund",
    },
    "zh-CN": {
        r"您": "你", r"编辑(?!并保存)": "干预", r"静默": "屏蔽", r"位点": "注意力层", r"次序": "顺序", r"头部": "文件头",
        r"存档": "压缩包", r"有多[^少个种次数组]": "程度，概率", r"带着干预": "干预后", r"对一切": "所有位置", r"取而代之": "而是",
        r"可比较的。": "没有可比较的内容。", r"强制目标": "给定目标", r"[「」]": "“”", r"[一-鿿] [一-鿿]": "中文之间没有空格",
        r"奈特|比特": "nat，bit", r"秩相关": "等级相关系数", r"学到的[汇数]": "可学习的", r"点按": "轻触",
        r"标准误差": "标准误", r"按 Enter": "按回车键",
        r"份额": "占比", r"关注": "注意", r"无法运行的文本|运行文[字本]": "处理", r"现场": "即时", r"两个统计": "两份统计",
    },
    "zh-TW": {
        r"您": "你", r"編輯(?!並儲存)": "介入", r"靜默": "關閉", r"位點": "注意力層", r"次序": "順序", r"標頭|頭部": "檔頭",
        r"封存": "壓縮檔", r"有多[^少個種次數組]": "程度，機率", r"點選": "按一下", r"丟失": "遺失", r"[被已不]遮罩": "遮蔽",
        r"[“”]": "「」", r"強制目標": "給定目標", r"取而代之": "而是", r"(?<!集)束搜尋": "集束搜尋",
        r"[一-鿿] [一-鿿]": "中文之間沒有空格", r"奈特|比特": "nat，bit",
        r"筆文本": "則文本", r"學到的[匯數]": "可學習的", r"點按": "輕觸", r"標準誤差": "標準誤",
        r"份額": "佔比", r"關注": "注意", r"無法執行的文本|執行文[字本]": "處理", r"現場": "即時", r"兩個統計": "兩份統計",
        r"占(?!領)": "佔", r"點一下|點擊": "按一下，輕觸", r"含義": "意義", r"匹配": "相符",
    },
}  # fmt: skip
"""What no catalogue says any more, with what it says instead."""


@cache
def sentences(spoken: str) -> list[tuple[str, str]]:
    """Each message of a language with its original; of English, those of the pages."""
    if spoken != "en":
        return translate.sentences(spoken)
    with (ROOT / "viz" / "i18n" / "locale" / "headlight.pot").open("rb") as file:
        told = [message for message in pofile.read_po(file) if message.id and of_the_pages(message.locations[0][0])]
    return [(text, text) for message in told for text in ([message.id] if isinstance(message.id, str) else message.id)]


def of_the_pages(path: str) -> bool:
    """Whether a message is one of the pages, not of `model`."""
    return path.startswith(("viz/", "checkpoints/")) and path != "viz/phrases.py"


@pytest.mark.parametrize(("spoken", "pattern"), [(spoken, pattern) for spoken in PATTERNS for pattern in PATTERNS[spoken]])
def test_what_native_readers_stumbled_over_is_not_said_again(spoken: str, pattern: str) -> None:
    said = [(one, other) for one, other in sentences(spoken) if re.search(pattern, re.sub(r"\S*[=_]\S*", "", other))]
    assert said == [], f"say: {PATTERNS[spoken][pattern]}"


def telling(node: ast.AST) -> bool:
    """Whether an expression holds a translated message."""
    calls = (call for call in ast.walk(node) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name))
    return any(isinstance(call.func, ast.Name) and call.func.id in TELLING for call in calls)


def inserted(source: str) -> Iterator[tuple[str, str]]:
    """Each message of a file with the name of a gap that another message fills, directly or by a variable of the same function."""
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        told = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and telling(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("_", "_n"):
                for gap in call.keywords:
                    variable = gap.value.id if isinstance(gap.value, ast.Name) else ""
                    if gap.arg and (telling(gap.value) or variable in told):
                        yield from ((str(text.value), gap.arg) for text in call.args if isinstance(text, ast.Constant))


def test_no_message_stands_among_the_words_of_another() -> None:
    for path in sorted((ROOT / "viz").rglob("*.py")):
        for text, gap in inserted(path.read_text(encoding="utf-8")):
            assert not among_words(text, gap), f"{path.name}: {text!r} with a message in {{{gap}}}: write a sentence for each case"


def test_inserted_messages_are_found() -> None:
    source = (
        'def f(x):\n    what = _("the row") if x else _("the step")\n    return _("{what} must be {n}", what=what, n=_("a number"))'
    )
    assert list(inserted(source)) == [("{what} must be {n}", "what"), ("{what} must be {n}", "n")]
    assert among_words("{what} must be a number", "what")
    assert among_words("the {what}.", "what")
    assert not any(among_words("{what}: {found} is not a number ({why})", gap) for gap in ("what", "why"))
