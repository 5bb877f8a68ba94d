"""The statistics of drift assurance: certificates, and the monitor that watches them. Pure: no I/O, no clock, no randomness of its own."""
