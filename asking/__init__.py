"""What asks: where, in which fields, what came back, what a failure means, what is written down."""
