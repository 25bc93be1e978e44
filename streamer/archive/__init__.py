"""`headrace archive`: the server's binlog files, byte by byte, in a folder or an object store."""
