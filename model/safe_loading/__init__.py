"""Opens any file that claims to be a checkpoint: safetensors, torch's zip, torch's older stream. Nothing in it is executed.

`reading` is the way in. It lets a second process look into the file: `child`, a bare Python that can import nothing but the
standard library and this package, write no file, and has a limit on its memory and its time. That process only describes what is
there (`plan`): which bytes of the file are which tensor. `sniffing` tells what a file is by its content, `archive`, `stream` and
`safetensors` find the bytes, `machine` follows a pickle's instructions over inert values (`values`) without importing or calling
anything, `contents` finds the tables of tensors and what stands beside them, `checks` holds every tensor against its bytes. Only
then does `reading` copy the bytes described into tensors.

`worker` is such a process for many questions, and `bounds` are the limits of both.

This file imports nothing, so that the second process does not load torch.

May import: model.errors.
"""
