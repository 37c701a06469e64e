"""Reports of a run: ``report.json`` for machines, ``summary.md`` for people."""
