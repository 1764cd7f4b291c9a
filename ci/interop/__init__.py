"""Protocols of runners and clients that already exist, spoken on the same lifecycle functions as our own API."""
