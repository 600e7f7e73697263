"""What somebody sees who comes for the first time: the first picture, and a tour in five steps."""
