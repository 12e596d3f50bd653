"""`compilewatch run`: the agent in each Python process below any command."""
