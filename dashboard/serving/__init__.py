"""Requests before and after a thread answers them: deadlines, memory and lanes, the same under
granian and under waitress."""
