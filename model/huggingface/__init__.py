"""Hugging Face folders: networks of the transformers library are run by the library's own code and recorded.

`folder` reads the files without executing anything, `config` makes the spec, `families` maps each architecture's module names,
`checks` are those of every folder and refuse absurd sizes before anything is built, `library` wraps the transformers library,
`fidelity` refuses foreign settings, `loading` builds the network, `network` runs it, `attention`, `hooks` and `written_out` record
it, `tokenizer` splits texts, `parts` says what a run records, `places` says where the parts of a network are, `finding` finds them
in an architecture without a row, and `recorded` runs one as a whole.
"""
