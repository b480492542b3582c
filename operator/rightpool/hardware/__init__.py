"""What machines are: the catalog of accelerators, pools of interchangeable nodes, placements on them."""
