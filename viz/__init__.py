"""The Streamlit app. It never imports torch: a page asks an Engine for a Trace and draws it."""
