"""Opens any file that claims to be a checkpoint: safetensors, torch's zip, torch's older stream. Nothing in it is executed.

`reader` is the entry point. It starts the `sandbox`, a child process: a bare Python that can import only the standard library and
this package, writes no file, and has limited memory and time. The child only describes the file (`plan`): which bytes are which
tensor. `file_type` detects the format by content; `torch_zip`, `torch_legacy` and `safetensors` locate the bytes; `pickle_machine`
interprets a pickle with `inert_values`, importing and calling nothing (`allowed_names`); `state_dicts` finds the state dicts and
other entries; `tensor_checks` validates every tensor against its bytes. Only then does `reader` copy the bytes into tensors.

`worker` is a child process that answers many questions; `bounds` limits both kinds of process, `limits` holds the numbers.

This file imports nothing, so that the child process does not load torch.
"""
