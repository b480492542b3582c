"""Carrying a decision out: phases, transitions, commands, verification, ledger."""
