"""The smallest Streamlit app: one line of text in, one line out. The app's time to paint is compared with it."""

import streamlit as st

typed = st.text_input("line", label_visibility="collapsed")
st.html(f'<span id="echo">{len(typed)}</span>')
