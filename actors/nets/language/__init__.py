"""The text language of nets: that of S-Net, as its published compiler accepts it."""
