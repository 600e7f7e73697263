"""Lectures: Markdown files whose steps show views of the app, and the check that they say what the model does."""
