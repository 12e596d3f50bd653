"""The whole line with real processes: jobs, web, worker, beat, database, broker, and a receiver
that stands in for Slack."""
