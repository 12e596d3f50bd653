"""Takes reports and owns what it must lock and answer with."""
