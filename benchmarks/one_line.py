"""The least that a Streamlit app can be: one line of text in, one line out. What the app's time to paint is compared with."""

import streamlit as st

typed = st.text_input("line", label_visibility="collapsed")
st.html(f'<span id="echo">{len(typed)}</span>')
