"""The text language of nets: S-Net's, as its published compiler has it."""
