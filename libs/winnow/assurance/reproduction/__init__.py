"""Published figures, computed again from published counts: each with the value found, what it shows, and the definition that gives it."""
