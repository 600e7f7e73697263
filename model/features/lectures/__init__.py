"""The command that checks lectures; lectures themselves are viz/features/lectures."""
