"""The features of the app: all that a visitor does not need to type a sentence and see every head, mask and position.

Each is a folder with everything of it, whose module `feature` says what it brings to the app (viz/feature.py).
Taking one out is removing its folder and its name.

May import: nothing of this project.
"""

FEATURES = ("live", "tour", "compare", "what_if", "circuit", "modern_attention", "survey", "training")
"""Their names in the order of their imports: a feature imports the core, and features before it."""
