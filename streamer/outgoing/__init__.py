"""What a pipeline file asks for beside the records as they are: transforms, dead letters, headers, transactions."""
