"""HTTP: submit a boundary, wait for its result, read history, recover originals."""
