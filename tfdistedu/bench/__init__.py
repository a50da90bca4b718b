"""The same work done in several ways, to compare."""
