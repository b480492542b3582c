"""The resources that the operator reads and writes, except for children: `workloads.kinds` names those."""

from typing import Final

from rightpool.api.kubernetes import Resource
from rightpool.contract import GROUP, VERSION

PROFILED_JOBS: Final = Resource(GROUP, VERSION, "ProfiledJob", "profiledjobs")
ACCELERATOR_POOLS: Final = Resource(GROUP, VERSION, "AcceleratorPool", "acceleratorpools", namespaced=False)
PLACEMENT_POLICIES: Final = Resource(GROUP, VERSION, "PlacementPolicy", "placementpolicies", namespaced=False)
PODS: Final = Resource("", "v1", "Pod", "pods")
POD_TEMPLATES: Final = Resource("", "v1", "PodTemplate", "podtemplates")
NODES: Final = Resource("", "v1", "Node", "nodes", namespaced=False)
PERSISTENT_VOLUMES: Final = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAPS: Final = Resource("", "v1", "ConfigMap", "configmaps")
LEASES: Final = Resource("coordination.k8s.io", "v1", "Lease", "leases")
SERVICES: Final = Resource("", "v1", "Service", "services")
ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
# Kueue's own view of a child that waits in a queue. There is none where Kueue is not installed.
WORKLOADS: Final = Resource("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
# Of the Gateway API, which may not be installed.
HTTP_ROUTES: Final = Resource("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
EVENTS: Final = Resource("", "v1", "Event", "events")
# Chips as devices. Before Kubernetes 1.34, and where the API is off, there are none.
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICES: Final = Resource("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
