"""Data: the digits, global batches and how they fall on replicas, and an audit of who saw which example."""
