"""Giving a lecture: the views of its steps as pictures that need no script run, the pages of lecturer and students, the file to
take home.
"""
