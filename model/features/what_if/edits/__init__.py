"""The arithmetic of edits: turns the edits of a request into interventions in the values of a run. docs/what-if.md defines each.

`edited_run` is what a run asks; it finds tokens by `strips`, and `attention_edits`, `stack_edits` and `patches` make the functions.
"""
