"""candidate -> entries, evidence, provenance, features."""
