"""How good a judge is, measured on labelled boundaries. Pure: data and draws come in, figures and documents go out."""
