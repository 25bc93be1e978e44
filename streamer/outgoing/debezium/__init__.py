"""Records as Debezium's MySQL connector gives them to Kafka Connect's JSON converter, each with its schema."""
