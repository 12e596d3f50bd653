"""Export: windows leave the process."""
