"""Records as text: JSON lines, and the XML of S-Net's programs."""
