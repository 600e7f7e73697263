"""What people type for a model of a Hub."""

import pytest

from model.checkpoints.hub import names
from model.checkpoints.hub.names import HubName, mode, parsed
from model.errors import BadSetting, NotAHubPage
from model.huggingface import offline

HOST = "https://hub.test"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpt2", HubName("gpt2")),
        (" hub:gpt2 ", HubName("gpt2")),
        ("openai-community/gpt2", HubName("openai-community/gpt2")),
        ("Qwen/Qwen3-0.6B@main", HubName("Qwen/Qwen3-0.6B", "main")),
        ("hub:Qwen/Qwen3-0.6B@refs/pr/1", HubName("Qwen/Qwen3-0.6B", "refs/pr/1")),
        (f"{HOST}/Qwen/Qwen3-0.6B", HubName("Qwen/Qwen3-0.6B")),
        (f"{HOST}/gpt2/", HubName("gpt2")),
        (f"{HOST}/Qwen/Qwen3-0.6B/tree/v1?library=x#top", HubName("Qwen/Qwen3-0.6B", "v1")),
        (f"{HOST}/Qwen/Qwen3-0.6B/blob/11c5a3d/config.json", HubName("Qwen/Qwen3-0.6B", "11c5a3d")),
        (f"{HOST}/gpt2/resolve/main/model.safetensors", HubName("gpt2", "main")),
        (f"{HOST}/Qwen/Qwen3-0.6B/discussions", HubName("Qwen/Qwen3-0.6B")),
        ("", None),
        ("a/b/c", None),
        ("../gpt2", None),
        ("gpt2@../../x", None),
        ("~/models/a.pt", None),
        ("C:\\models\\a.pt", None),
        ("ein Hund", None),
        ("hub:", None),
        ("gpt2@", None),
    ],
)
def test_names_and_addresses(text: str, found: HubName | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "HOSTS", frozenset({"hub.test"}))
    assert parsed(text) == found
    assert found is None or parsed(str(found)) == parsed(found.typed) == found


@pytest.mark.parametrize(
    "text",
    ["https://elsewhere.test/gpt2", "ftp://hub.test/gpt2", f"{HOST}/", f"{HOST}/hub:gpt2", f"{HOST}/a..b", "https://[::1", "://"],
)
def test_other_addresses_are_refused_in_a_sentence(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "HOSTS", frozenset({"hub.test"}))
    with pytest.raises(NotAHubPage, match=r"is not the page of a model on the Hub \(hub\.test\)"):
        parsed(text)


@pytest.mark.parametrize(
    ("value", "public", "allowed"),
    [("", "", "ask"), ("cache", "", "cache"), ("off", "", "off"), ("", "1", "off"), ("ask", "1", "ask"), ("ask", "", "ask")],
)
def test_the_owner_says_what_names_may_do(value: str, public: str, allowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(names.VARIABLE, value)
    monkeypatch.setenv("HEADLIGHT_PUBLIC", public)
    assert mode() == allowed
    monkeypatch.setenv(names.VARIABLE, "sometimes")
    with pytest.raises(BadSetting, match="off, cache, ask"):
        mode()
