"""DDL on the pipeline's tables: understood, told, acted on."""
