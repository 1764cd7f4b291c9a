"""The messages of the protocols ping.v1 and runner.v1: generated, see CONTRIBUTING.md; never edited by hand."""
