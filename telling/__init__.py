"""What a reader gets to see: sentences, text, pages, pictures."""
