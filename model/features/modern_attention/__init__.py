"""What a decoder costs: the sizes of its cache, times by length, and the same run without a cache. `costs` needs no torch."""
