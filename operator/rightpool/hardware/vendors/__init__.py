"""Accelerator vendors, one module each: what nodes, pods and price lists call its chips. The registry has them all."""
