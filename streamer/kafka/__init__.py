"""What every Kafka client of the streamer shares."""
