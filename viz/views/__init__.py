"""The pages: a folder each, or a file. Not called `pages`: Streamlit takes a folder of that name beside its script for its own."""
