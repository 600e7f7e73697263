"""The Streamlit app. It never imports torch: a page asks an Engine for a Trace and draws it.

From the bottom up: memory_metrics, theme, language, phrases, texts, visible, labels, link_values, link_parameter, links,
opening_run, fed_run, edit_words, experiment, recording, descriptions, readings, lectures, canvas, notebook, calls, waiting,
figures, export, download, publication, archive_notebook, archive, figure_dialog, public, every_answer, classroom,
panel_help, page, recognition, unfamiliar, numeric_tables, lecture_editor, big_mode, file_limit, sentence, streamlit_words,
scheme_change, sidebar, walk, whatif, views, presenting, prepare, live, main.
A file or folder imports only what comes before it.
"""
