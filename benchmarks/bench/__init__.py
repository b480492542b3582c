"""How well `rightpool bench` tells which commit made a program slower, and why."""
