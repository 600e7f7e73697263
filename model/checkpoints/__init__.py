"""Checkpoints: native folders, files of other programs through a layout, and folders of the transformers library."""
