"""How servers are sized: what the model is off by, and dollars and lateness on recorded demand."""
