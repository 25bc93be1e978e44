"""What a person or a monitor sees of a running pipeline."""
