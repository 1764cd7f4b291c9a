"""Which well-known actions can the runner carry out itself, on machines without Node.js?

Each runs as a program of its own, as the real action does: it reads INPUT_* variables, prints workflow commands and
writes environment files, so that cancelling, time limits, masks, outputs and state need nothing beyond what every
JavaScript action has."""
