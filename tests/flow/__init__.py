"""The whole line with real processes: jobs, web, worker, database, broker, and a receiver in
place of Slack."""
