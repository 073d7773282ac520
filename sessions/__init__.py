"""What was said: transcripts, their adapters, and the session history."""
