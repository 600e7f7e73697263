"""One line in a notebook: attention of any library as a trace, and its overview as the output of a cell (docs/notebook.md).

It needs numpy and safetensors, and whatever made the arrays. package/viewer.py copies it, with what it imports, into the wheel.
"""
