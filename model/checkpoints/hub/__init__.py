"""Models by their names on a Hub: what a name means, what this machine's cache holds, what a download would take, and the download.

The library huggingface_hub does the work. Its network is used by a process of its own (`worker`) and only there: in this process,
the library is told to stay offline before it is imported.
"""
