"""How a decision is carried out, step by step."""
