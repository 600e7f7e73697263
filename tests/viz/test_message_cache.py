"""The server refers to a message that the browser has only while its last runs used it; what a part draws ages with each run."""

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from viz.session.message_cache import RECENT_RUNS, SentMessages


def message(name: str, part: str = "") -> ForwardMsg:
    """A large message, of the page or of a part of it."""
    large = ForwardMsg(hash=name)
    large.metadata.cacheable = True
    large.delta.fragment_id = part
    return large


def test_a_message_is_referred_to_for_as_many_runs_as_streamlit_would() -> None:
    sent = SentMessages()
    sent.begin(whole=True)
    for large in (message("page"), message("part", "choices"), ForwardMsg(hash="small")):
        sent.note(large)
    assert sent.used.keys() == {"page", "part"}
    for _run in range(RECENT_RUNS):
        sent.begin(whole=False)
        assert sent.used.keys() == {"page", "part"}
    sent.begin(whole=False)
    assert sent.used.keys() == {"page"}, "runs of a part make what surrounds it no older"
    for _run in range(RECENT_RUNS):
        sent.begin(whole=True)
        assert sent.used.keys() == {"page"}
    sent.begin(whole=True)
    assert sent.used == {}
