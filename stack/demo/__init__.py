"""The demo: a real data set, a day's flying replayed, and the whole pipeline run and checked over it."""
