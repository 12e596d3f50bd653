"""Pure folding: acknowledged reports in, facts out; no Django here."""
