"""The features of the engine: all that a visitor does not need to type a sentence and see every head, mask and position.

Each is a folder with everything of it that computes, whose module `feature` says what it brings (model/feature.py).
Taking one out is removing its folder and its name.

May import: nothing of this project.
"""

FEATURES = ("what_if", "circuit", "modern_attention", "survey", "training", "serving")
"""Their names in the order of their imports: a feature imports the core, and features before it."""
