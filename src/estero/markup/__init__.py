"""What notebooks show: escaped HTML in one style, tables, highlighted queries, the colours of labels."""
