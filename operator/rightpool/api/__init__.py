"""What users write and read: the v1alpha1 resources, their conditions, and the CRDs generated from them."""
