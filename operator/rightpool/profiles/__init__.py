"""What a job does: samples over a window become a Profile, a Profile becomes a Bottleneck. Pure."""
