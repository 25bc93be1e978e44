"""A pipeline that stands still goes on from another place of its server's binlog."""
