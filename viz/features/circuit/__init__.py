"""The page Circuit: which earlier head each head used in a run (`page`), and which paths tell two sentences apart (`paths`)."""
