"""What a particle may be told beside the four ways of swarm.py: a hint, and arms of your own."""
