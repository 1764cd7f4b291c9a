"""Runner sets: groups of single-use runners that grow and shrink with demand."""
