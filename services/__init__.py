"""The processes of Winnow, one folder each; services never import one another."""
