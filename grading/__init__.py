"""What grades: a reply becomes a program, a program an output, an output a verdict."""
