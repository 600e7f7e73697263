"""Which large messages the server only refers to, because the browser still has them: those that the last runs of the script used.

Streamlit's browser keeps a message for some runs after the last one that used it, and each of its requests names what it has. If
the end of a run is still on its way then, the browser drops messages that it has just named. The server refers to one of them, and
the page is dead until it is loaded again, as no later message is taken. So the browser keeps messages for longer
(`maxCachedMessageAge` in `.streamlit/config.toml`) than the server refers to them: by as many runs as can have ended without its
knowing.
"""

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

RECENT_RUNS = 2
"""So many runs after its last use the server still refers to a message: Streamlit's own number."""


@dataclass
class SentMessages:
    """The large messages that a session was sent lately.

    Attributes:
        runs: runs of the script, or of a part of it.
        whole_runs: runs of the whole script.
        used: hash of a message: the count of runs when it was last used, and whether it belongs to a part.
    """

    runs: int = 0
    whole_runs: int = 0
    used: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def begin(self, whole: bool) -> None:
        """Begins a run, and forgets what was not used lately. As in the browser, a run of a part makes no other message older."""
        self.runs += 1
        self.whole_runs += whole
        oldest = {False: self.whole_runs - RECENT_RUNS, True: self.runs - RECENT_RUNS}
        self.used = {name: use for name, use in self.used.items() if use[0] >= oldest[use[1]]}

    def note(self, message: ForwardMsg) -> None:
        """Notes that a message is used."""
        if message.metadata.cacheable:
            of_part = bool(message.delta.fragment_id)
            self.used[message.hash] = (self.runs if of_part else self.whole_runs, of_part)


_SENT = WeakKeyDictionary[PagesManager, SentMessages]()
"""By what a session has one of, and its runs share."""


def refer_to_recent_messages() -> None:
    """Lets the server refer only to what its last runs used, whatever else the browser names."""
    reset, enqueue = ScriptRunContext.reset, ScriptRunContext.enqueue

    def reset_to_recent(context: ScriptRunContext, *positional: Any, **named: Any) -> None:
        reset(context, *positional, **named)
        sent = _SENT.setdefault(context.pages_manager, SentMessages())
        sent.begin(whole=not context.fragment_ids_this_run)
        context.cached_message_hashes &= sent.used.keys()

    def enqueue_and_note(context: ScriptRunContext, msg: ForwardMsg) -> None:
        enqueue(context, msg)
        _SENT.setdefault(context.pages_manager, SentMessages()).note(msg)

    ScriptRunContext.reset = reset_to_recent  # type: ignore[assignment, method-assign]
    ScriptRunContext.enqueue = enqueue_and_note  # type: ignore[assignment, method-assign]
