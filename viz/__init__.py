"""The Streamlit app. It never imports torch: a page asks an Engine for a Trace and draws it.

From the bottom up: feature, i18n, labels, url, figures, panels, metrics, claims, canvas, export, session, widgets, views, features,
main.
A file or folder imports only what comes before it.
"""
