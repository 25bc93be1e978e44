"""Where a run of the pipeline begins."""
