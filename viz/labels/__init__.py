"""Words for what is drawn: tokens, sites, edits, and the texts that a screen reader reads for a picture."""
