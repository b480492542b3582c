"""The benchmark of judgement: what the operator decides about jobs of which everything is known."""
