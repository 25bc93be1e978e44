"""`python -m streamer.cli`."""

from streamer.cli import app

if __name__ == "__main__":
    app()
