"""Checks of your own controllers."""

from __future__ import annotations

from . import _weir
from .controller import Controller


def check_controller(controller: type[Controller], scripts: int = 100, seed: int = 1) -> None:
    """Drives a controller with random, hostile scripts, and raises at the first rule that it breaks.

    Rules: the target starts at the start bitrate and stays within the limits, timeouts lie in the
    future, equal calls give equal results, silence lowers the target, a healed path is used again,
    the receiver's limit is obeyed, and more. The `WeirError` contains the shortest script found.
    """
    _weir.check_controller(controller, scripts, seed)
