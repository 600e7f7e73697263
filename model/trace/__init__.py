"""The trace: everything that one run recorded, as a frozen value of numpy arrays, and its file format. No torch."""
