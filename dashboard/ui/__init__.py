"""The pages; the last stage, imported by no one."""
