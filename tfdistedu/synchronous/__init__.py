"""The ways of training that keep step: all replicas do one update together, and hold the same weights after it."""
