"""Small stand-ins for the engines runners start on: they keep state, answer as the real ones do, and run processes."""
