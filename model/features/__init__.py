"""The features of the engine: all that a visitor does not need to type a sentence and see every head, mask and position.

Each is a folder with everything of it that computes, whose module `feature` says what it brings (model/feature.py).
Taking one out is removing its folder and its name.
"""

FEATURES: dict[str, tuple[str, ...]] = {
    "what_if": (),
    "circuit": ("what_if",),
    "modern_attention": ("what_if",),
    "survey": ("circuit", "what_if"),
    "training": (),
    "serving": (),
    "print": (),
    "lectures": (),
}
"""Their names in the order of their imports, each with those that it imports; without one of these it is left out."""
