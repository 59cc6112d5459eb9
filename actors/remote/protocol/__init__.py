"""What client and server say to each other, without input and output."""
