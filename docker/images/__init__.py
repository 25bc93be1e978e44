"""Builds the images, and proves them on real servers. `python -m docker.images`, which `make images` calls."""
