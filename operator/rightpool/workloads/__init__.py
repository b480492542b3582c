"""How a Placement becomes pods: pure builders of manifests."""
