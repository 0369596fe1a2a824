"""What the attempts of a run add up to: due, in arrays, in results.json."""
