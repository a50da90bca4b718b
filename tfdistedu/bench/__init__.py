"""The same work done in several ways, as tables and JSON."""
