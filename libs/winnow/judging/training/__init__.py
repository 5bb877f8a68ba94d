"""Training of the source model: from labelled boundaries to a file of coefficients, and what it is worth on runs it has not seen."""
