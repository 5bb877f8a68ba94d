"""The core: parse, retrieve, provenance, decide. Pure: no I/O, no clock, no environment."""
