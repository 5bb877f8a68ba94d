"""Events, topics, headers and outcomes: what crosses a process boundary. Imports nothing else of Winnow."""
