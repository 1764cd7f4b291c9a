"""Calls that wait for what happens in the database, without cost: for our own runner API and for others alike."""
