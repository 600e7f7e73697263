"""The URL: its parameters, how each is read and written, and the view they describe, which is the only state."""
