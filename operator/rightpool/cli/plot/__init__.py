"""Pictures in files: of an explanation (`rightpool explain --plot`), and what draws others."""
