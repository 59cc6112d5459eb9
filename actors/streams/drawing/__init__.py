"""Drawings of graphs: in words, as Mermaid diagrams and as pictures."""
