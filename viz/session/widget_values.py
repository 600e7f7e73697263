"""What a page says that the value of a widget is. A program can send what no page sends: that is as if it had sent nothing.

Streamlit hands whatever came to the widget, again in each run of the script: one number where a text belongs, and the session saw
nothing but errors until it was closed.
"""

from typing import Any

from streamlit.runtime.state.session_state import Serialized, Value, WStates

_NUMBERS = {"int_value", "double_value"}
"""Kinds that are one: a box for numbers is registered for floats, and its page sends whole numbers as such."""


def ignore_forged_values() -> None:
    """Lets widgets ignore values of another kind than theirs, and those that they cannot read."""
    read = WStates.__getitem__

    def checked(states: WStates, widget: str) -> Any:
        held, metadata = states.states.get(widget), states.widget_metadata.get(widget)
        if not isinstance(held, Serialized) or metadata is None:
            return read(states, widget)
        kind = held.value.WhichOneof("value")  # None: the widget was emptied
        if kind is None or metadata.value_type in (None, kind) or {kind, metadata.value_type} == _NUMBERS:
            try:
                return read(states, widget)
            except Exception:  # of the widget's own reader, on whatever somebody made up
                states.widget_metadata[widget] = metadata
        states.states[widget] = Value(metadata.deserializer(None))
        return read(states, widget)

    WStates.__getitem__ = checked  # type: ignore[method-assign]
