"""The pipeline file is edited while the stream runs: its tables are followed from the next transaction on."""
