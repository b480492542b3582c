"""Servers, by the dialects that their pages of metrics are written in."""
