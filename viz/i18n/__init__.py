"""Languages: catalogues, the language of a session, whole sentences with fields, the recognition of typed text."""
