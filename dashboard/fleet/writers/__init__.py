"""Writers: one module per kind of row that facts become."""
