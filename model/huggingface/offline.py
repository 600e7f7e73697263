"""Imports the Hub's library so that it stays offline in this process, whatever the transformers library asks of it.

It reads its environment once, when it is imported. The variable is as before afterwards, for processes that may use the network.
"""

import os
from pathlib import Path

_before = os.environ.get("HF_HUB_OFFLINE")
os.environ["HF_HUB_OFFLINE"] = "1"
from huggingface_hub import constants  # noqa: E402

if _before is None:
    del os.environ["HF_HUB_OFFLINE"]
else:
    os.environ["HF_HUB_OFFLINE"] = _before

HOSTS: frozenset[str] = constants.HF_URL_HOSTS
"""Hosts whose pages are pages of the Hub; that of HF_ENDPOINT is one."""


def cache_folder() -> Path:
    """The folder of the Hub's cache: HF_HUB_CACHE, or `hub` in HF_HOME; it may be missing."""
    return Path(constants.HF_HUB_CACHE)
