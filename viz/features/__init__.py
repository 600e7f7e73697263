"""The features of the app: all that a visitor does not need to type a sentence and see every head, mask and position.

Each is a folder with everything of it, whose module `feature` says what it brings to the app (viz/feature.py).
Taking one out is removing its folder and its name.
"""

FEATURES: dict[str, tuple[str, ...]] = {
    "print": (),
    "live": (),
    "tour": (),
    "compare": ("what_if",),
    "what_if": ("compare",),
    "circuit": ("what_if",),
    "modern_attention": ("what_if",),
    "survey": ("circuit", "what_if"),
    "training": ("print",),
    "lectures": ("print",),
    "notebook": (),
}
"""Their names in the order of their imports, each with those that it imports; without one of these it is left out."""
