"""From rows to what a chart draws and what its table says; pure, no Django."""
