"""Runner sets: what starts, finds and ends the processes of their runners. What shall be is decided in ci.lifecycle."""
