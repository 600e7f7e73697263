"""Surveys: what each head does over many texts. A survey adds up the statistics of measures.

`agreement` compares heads. `texts` is what is read,
`answers` runs texts and measures them, `statistics` adds up, `roles` names heads by stated criteria, `tables` keeps a survey as
Parquet. `reading` is one head in many texts again, `plane` draws its queries and keys, `examples` finds its cells, and `trees`
has the parses of texts. Only `answers` and `reading_answers` need torch.
"""
