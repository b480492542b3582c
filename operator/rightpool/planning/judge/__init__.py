"""Numbers on numbers: series of windows, how two of them differ, what was promised, and the verdict."""
