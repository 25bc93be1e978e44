"""Several pipelines on one machine: a process for each, and an API over all of them."""
