"""What every page is built of: cards, tables, dialogs, the sidebar, the sentence box, and projector mode."""
