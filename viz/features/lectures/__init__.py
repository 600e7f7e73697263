"""Lectures: `script/` reads and checks them, `presenter/` shows them, `classroom/` is the class, `editor` writes one."""
