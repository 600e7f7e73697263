"""A Streamlit app that shows nothing but a word: what a fresh tab costs before there is anything to draw."""

import streamlit as st

st.set_page_config(layout="wide")
st.html("<p>nothing</p>")
