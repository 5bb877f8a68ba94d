"""scores -> the committed summary."""
