"""The monitor's promises and its speed by simulation, beside the figures it was specified with: `make assure`."""
