"""The command line: reads configurations, plans the figures of each job, records once per model and writes files."""
