"""What graphs look like: in words, as Mermaid diagrams and as pictures."""
