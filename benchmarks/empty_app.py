"""A Streamlit app that shows one word: measures the cost of a new tab without any drawing."""

import streamlit as st

st.set_page_config(layout="wide")
st.html("<p>nothing</p>")
