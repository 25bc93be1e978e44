"""`headrace crosscheck`: a second opinion of mysql-replication on a stretch of a live server's binlog."""
