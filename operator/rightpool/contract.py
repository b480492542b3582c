"""Names that the operator, the sidecar, the agent's environment and the charts agree on.

Standard library only: the sidecar imports this module and nothing else of the operator. Ratios are 0–1, everything
else SI base units. A field that cannot be read is absent from the exposition, never 0.

The sidecar does not say whose series these are. `namespace`, `pod`, `profiledjob` and `revision` are attached by who
scrapes (Prometheus by relabelling from the pod's metadata, the operator from its own list of pods), so that a tenant
cannot write another tenant's series.
"""

from typing import Final

GROUP: Final = "rightpool.dev"
VERSION: Final = "v1alpha1"
FIELD_MANAGER: Final = "rightpool"
MANAGED_BY: Final = "rightpool.dev/operator"

# Labels and annotations on objects.
LABEL_JOB: Final = "rightpool.dev/profiledjob"
LABEL_REVISION: Final = "rightpool.dev/revision"
LABEL_POOL: Final = "rightpool.dev/pool"
LABEL_SOURCE: Final = "rightpool.dev/source"
SOURCE_DISCOVERED: Final = "discovered"
ANNOTATION_APPROVE: Final = "rightpool.dev/approve"

# The shared directory: the same path in every container of the pod. At most 54 characters (Kineto's socket limit).
SHARED_DIR: Final = "/tmp/rightpool"
SHARED_VOLUME: Final = "rightpool-shared"
AGENT_DIR: Final = "/tmp/rightpool/agent"
USER_BASE_DIR: Final = "/tmp/rightpool/userbase"  # for PYTHONUSERBASE: lib/python3.N/site-packages/usercustomize.py
AGENT_SOCKET: Final = "/tmp/rightpool/profiler.sock"
COMMAND_DIR: Final = "/tmp/rightpool/commands"
TRACE_DIR: Final = "/tmp/rightpool/traces"
SIDECAR_CONTAINER: Final = "rightpool-profiler"
INSTALL_CONTAINER: Final = "rightpool-agent"

# HTTP.
SIDECAR_PORT: Final = 9464
SIDECAR_PORT_NAME: Final = "rightpool"
PATH_METRICS: Final = "/metrics"
PATH_PROFILE: Final = "/profile"
PATH_HEALTH: Final = "/healthz"
PATH_CHECKPOINT: Final = "/checkpoint"

# Environment of the sidecar (SIDECAR_*) and of the user's container (the rest), set by workloads/.
ENV_TOKEN_SHA256: Final = "RIGHTPOOL_TOKEN_SHA256"  # of the Revision's bearer token, hex; the token itself stays away
ENV_SHARED_DIR: Final = "RIGHTPOOL_SHARED_DIR"
ENV_INTERVAL: Final = "RIGHTPOOL_INTERVAL_SECONDS"
ENV_TRACE: Final = "RIGHTPOOL_TRACE"  # Auto, Off
ENV_CHECKPOINT_MODE: Final = "RIGHTPOOL_CHECKPOINT_MODE"  # Signal, Periodic, None
ENV_CHECKPOINT_SIGNAL: Final = "RIGHTPOOL_CHECKPOINT_SIGNAL"  # SIGUSR1, ...
ENV_CHECKPOINT_PATH: Final = "RIGHTPOOL_CHECKPOINT_PATH"
ENV_CHIPS: Final = "RIGHTPOOL_CHIPS"  # chips of this pod

# Metrics. Labels in braces.
CHIP_BUSY: Final = "rightpool_chip_busy_ratio"  # {chip} any work resident
CHIP_COMPUTE_ACTIVE: Final = "rightpool_chip_compute_active_ratio"  # {chip} SM or TensorCore active
CHIP_MATRIX_ACTIVE: Final = "rightpool_chip_matrix_active_ratio"  # {chip} tensor cores or MXU active
CHIP_MEMORY_BANDWIDTH: Final = "rightpool_chip_memory_bandwidth_ratio"  # {chip}
CHIP_OCCUPANCY: Final = "rightpool_chip_occupancy_ratio"  # {chip}
CHIP_MEMORY_USED: Final = "rightpool_chip_memory_used_bytes"  # {chip} peak since the last scrape interval
CHIP_MEMORY_TOTAL: Final = "rightpool_chip_memory_total_bytes"  # {chip}
CHIP_POWER: Final = "rightpool_chip_power_watts"  # {chip}
CHIP_ENERGY: Final = "rightpool_chip_energy_joules_total"  # {chip}
CHIP_THROTTLE: Final = "rightpool_chip_throttle_ratio"  # {chip, reason}
CHIP_ERRORS: Final = "rightpool_chip_errors_total"  # {chip, kind}
LINK_BYTES: Final = "rightpool_link_bytes_total"  # {chip, link, direction}
STEP_SECONDS: Final = "rightpool_step_seconds"  # histogram
SAMPLES: Final = "rightpool_samples_total"  # samples this process consumed: the sum over pods is the job's
STEPS: Final = "rightpool_steps_total"
STEP_SHARE: Final = "rightpool_step_share_ratio"  # {part}
CHECKPOINT_TIMESTAMP: Final = "rightpool_checkpoint_timestamp_seconds"  # last complete save seen, Unix time
CHECKPOINT_SECONDS: Final = "rightpool_checkpoint_duration_seconds"  # how long that save held up the program
SOURCE_UP: Final = "rightpool_source_up"  # {source} 1 while the source delivers
FIELD_QUALITY: Final = "rightpool_field_quality"  # {field, quality} 1

LABEL_CHIP: Final = "chip"
LABEL_PART: Final = "part"
LABEL_REASON: Final = "reason"

# Values of `part`: shares of one step, summing to at most 1.
PART_COMPUTE: Final = "compute"
PART_EXPOSED_COMMUNICATION: Final = "exposed_communication"
PART_OVERLAPPED_COMMUNICATION: Final = "overlapped_communication"
PART_INPUT: Final = "input"
PART_IDLE: Final = "idle"
PART_MEMCPY: Final = "memcpy"
PARTS: Final = (
    PART_COMPUTE,
    PART_EXPOSED_COMMUNICATION,
    PART_OVERLAPPED_COMMUNICATION,
    PART_INPUT,
    PART_IDLE,
    PART_MEMCPY,
)

QUALITY_MEASURED: Final = "measured"
QUALITY_DERIVED: Final = "derived"
