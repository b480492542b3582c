"""Google TPUs on GKE: given out in slices, priced by the chip."""

from __future__ import annotations

from typing import Final

from rightpool.hardware.vendors.vendor import Benchmark, ProductLabel, SliceVariables, Vendor

GKE_TPU: Final = "cloud.google.com/gke-tpu-accelerator"
GKE_TPU_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"

GOOGLE: Final = Vendor(
    name="Google",
    resource_name="google.com/tpu",
    product_labels=(ProductLabel(GKE_TPU),),
    family_words=2,  # TPU-v5e
    topology_label=GKE_TPU_TOPOLOGY,
    priced_by_chip=True,
    slice_variables=SliceVariables(
        host_index="TPU_WORKER_ID",
        host_names="TPU_WORKER_HOSTNAMES",
        slices="MEGASCALE_NUM_SLICES",
        slice_index="MEGASCALE_SLICE_ID",
        coordinator="MEGASCALE_COORDINATOR_ADDRESS",
    ),
    benchmark=Benchmark("tpu", None),
)
