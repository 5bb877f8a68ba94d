"""The web console: pages over what the gateway may read, rendered on the server, with small scripts that pages do without."""
