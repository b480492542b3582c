"""`rightpool compare`: which accelerator to take for a job or a program, and what that depends on."""
