"""What keeps `manage.py up` from starting or from going on?"""


class CannotStart(Exception):
    """One sentence for the person who starts it; exit status 2. Nothing is left running."""


class CannotContinue(Exception):
    """One sentence on what broke after the start; exit status 1."""


class StopRequested(Exception):
    """Somebody asked for the end (Ctrl-C, SIGTERM) while a step was waiting."""
