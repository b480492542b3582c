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
LABEL_ROLE: Final = "rightpool.dev/role"  # of a pod: which of the workload's pod sets it is of
LABEL_SERVING: Final = "rightpool.dev/serving"  # of a pod: requests are sent to it once it is ready
LABEL_ADOPT: Final = "rightpool.dev/adopt"  # of an object that runs already: what is to be done with it
ANNOTATION_ADOPTED_BY: Final = "rightpool.dev/adopted-by"  # of such an object: uid of its ProfiledJob
ANNOTATION_ADOPTED_REVISION: Final = "rightpool.dev/revision"  # of such an object: its state, by number
LABEL_TEAM: Final = "rightpool.dev/team"  # of a ProfiledJob: who is charged; else the label `team`
LABEL_CHARGEBACK: Final = "rightpool.dev/chargeback"  # of a ConfigMap: the books of a namespace
LABEL_DEMAND: Final = "rightpool.dev/demand"  # of a ConfigMap: the record of what a server was asked for
LABEL_POOL_COSTS: Final = "rightpool.dev/pool-costs"  # of a ConfigMap: what the chips of pools cost, and idle ones
LABEL_ENDED_JOBS: Final = "rightpool.dev/ended-jobs"  # of a ConfigMap: which part of the records of ended jobs it is
LABEL_CATALOG: Final = "rightpool.dev/catalog"  # of a ConfigMap: what the chart's values say of chips and prices
CATALOG_KEY: Final = "catalog.json"  # in that ConfigMap
ANNOTATION_NAMESPACE: Final = "rightpool.dev/namespace"
ANNOTATION_JOB: Final = "rightpool.dev/job"  # of that ConfigMap: the name of the ProfiledJob
LABEL_POOL: Final = "rightpool.dev/pool"
LABEL_SOURCE: Final = "rightpool.dev/source"
SOURCE_DISCOVERED: Final = "discovered"
ANNOTATION_APPROVE: Final = "rightpool.dev/approve"
FINALIZER: Final = "rightpool.dev/object"  # of a ProfiledJob whose status alone knows its object
ANNOTATION_RELEASE: Final = "rightpool.dev/release"  # of a ProfiledJob: its object is to be put back and let go
ANNOTATION_TRIAL: Final = "rightpool.dev/trial"  # of a ProfiledJob: ID, ID:POOL or ID:POOL:SECONDS that is asked for
ANNOTATION_LOAD: Final = "rightpool.dev/load"  # of the pods of a server's trial: the requests that they get
ANNOTATION_TRACE: Final = "rightpool.dev/trace"  # of a ProfiledJob: ID, ID:RANK or ID:all of a trace that is asked for

# The shared directory: the same path in every container of the pod. At most 54 characters (Kineto's socket limit).
SHARED_DIR: Final = "/tmp/rightpool"
SHARED_VOLUME: Final = "rightpool-shared"
AGENT_DIR: Final = "/tmp/rightpool/agent"
USER_BASE_DIR: Final = "/tmp/rightpool/userbase"  # for PYTHONUSERBASE: lib/python3.N/site-packages/usercustomize.py
AGENT_SOCKET: Final = "/tmp/rightpool/profiler.sock"
COMMAND_DIR: Final = "/tmp/rightpool/commands"
TRACE_DIR: Final = "/tmp/rightpool/traces"
# The sidecar's own volume: the traces of the newest request of a user, and what is known of them.
KEPT_DIR: Final = "/tmp/rightpool-traces"
KEPT_VOLUME: Final = "rightpool-traces"
WARM_MARK: Final = "warm"  # a file of that volume, which is there while the server of the pod is warm
WARM_UP_DIR: Final = "/tmp/rightpool-warm-up"  # of the body of the requests that warm it up
WARM_UP_VOLUME: Final = "rightpool-warm-up"
WARM_UP_BODY: Final = "body"  # a file of that folder
WARM_UP_FAILED: Final = "warm-up failed: "  # what comes before the cause, in the sidecar's last words
SIDECAR_CONTAINER: Final = "rightpool-profiler"
INSTALL_CONTAINER: Final = "rightpool-agent"

# HTTP.
SIDECAR_PORT: Final = 9464
SIDECAR_PORT_NAME: Final = "rightpool"
PATH_METRICS: Final = "/metrics"
PATH_PROFILE: Final = "/profile"
PATH_HEALTH: Final = "/healthz"
PATH_CHECKPOINT: Final = "/checkpoint"
PATH_TRACE: Final = "/trace"

# Environment of the sidecar (SIDECAR_*) and of the user's container (the rest), set by workloads/.
ENV_TOKEN_SHA256: Final = "RIGHTPOOL_TOKEN_SHA256"  # of the Revision's bearer token, hex; the token itself stays away
ENV_SHARED_DIR: Final = "RIGHTPOOL_SHARED_DIR"
ENV_KEPT_DIR: Final = "RIGHTPOOL_KEPT_DIR"
ENV_INTERVAL: Final = "RIGHTPOOL_INTERVAL_SECONDS"
ENV_TRACE: Final = "RIGHTPOOL_TRACE"  # Auto, Off
ENV_CHECKPOINT_MODE: Final = "RIGHTPOOL_CHECKPOINT_MODE"  # Signal, Periodic, None
ENV_CHECKPOINT_SIGNAL: Final = "RIGHTPOOL_CHECKPOINT_SIGNAL"  # SIGUSR1, ...
ENV_CHECKPOINT_PATH: Final = "RIGHTPOOL_CHECKPOINT_PATH"
ENV_CHECKPOINT_FILES: Final = "RIGHTPOOL_CHECKPOINT_FILES"  # JSON list of patterns; absent: the agent's own
ENV_CHIPS: Final = "RIGHTPOOL_CHIPS"  # chips of this pod
ENV_WARM_UP: Final = "RIGHTPOOL_WARM_UP"  # JSON: port, method, path, content_type, requests, body of such requests
ENV_LOAD: Final = "RIGHTPOOL_LOAD"  # JSON: at_once, seconds of the requests that a trial of a server gets

# Metrics. Labels in braces.
CHIP_BUSY: Final = "rightpool_chip_busy_ratio"  # {chip} any work resident
CHIP_COMPUTE_ACTIVE: Final = "rightpool_chip_compute_active_ratio"  # {chip} SM or TensorCore active
CHIP_MATRIX_ACTIVE: Final = "rightpool_chip_matrix_active_ratio"  # {chip} tensor cores or MXU active
CHIP_MEMORY_BANDWIDTH: Final = "rightpool_chip_memory_bandwidth_ratio"  # {chip}
CHIP_OCCUPANCY: Final = "rightpool_chip_occupancy_ratio"  # {chip}
CHIP_PIPE: Final = "rightpool_chip_pipe_active_ratio"  # {chip, pipe}
CHIP_CLOCK: Final = "rightpool_chip_clock_ratio"  # {chip} of the compute units, to the chip's maximum
CHIP_OTHERS: Final = "rightpool_chip_others_ratio"  # {chip} SMs at work for processes that are not this pod's
CHIP_TEMPERATURE: Final = "rightpool_chip_temperature_celsius"  # {chip}
CHIP_POWER_LIMIT: Final = "rightpool_chip_power_limit_watts"  # {chip} what the driver enforces
CHIP_XID: Final = "rightpool_chip_xid"  # {chip} the highest critical XID seen, 0 for none
CHIP_REPAIR: Final = "rightpool_chip_repair_state"  # {chip} of memory: 0 none, 1 waits for a reset, 2 failed
CHIPS_UNUSED: Final = "rightpool_chips_unused"  # chips of this pod on which nothing ever ran, while others worked
CHIP_INFO: Final = "rightpool_chip_info"  # {chip, name, sharing, rank} 1
MEMORY_RETRIES: Final = "rightpool_memory_retries_total"  # allocations that had to free cached memory first
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
COMPILE: Final = "rightpool_compile_ratio"  # share of time in which the program compiled
SAVING: Final = "rightpool_saving_ratio"  # share of time in which the program stood still for a save
STEP_SAMPLES: Final = "rightpool_step_samples"  # samples of one step of this pod's processes
STEP_FLOPS: Final = "rightpool_step_flops"  # floating-point operations of the same, of its matrix products
MODEL_INFO: Final = "rightpool_model_info"  # {precision, parameter_dtype, data, sharded, tensor, pipeline} 1
MODEL_PARAMETERS: Final = "rightpool_model_parameters"  # that are trained, of the whole model
MODEL_PARAMETER_BYTES: Final = "rightpool_model_parameter_bytes"  # of those
MODEL_BYTES: Final = "rightpool_model_bytes"  # of all its parameters, also of those that are not trained
SOURCE_UP: Final = "rightpool_source_up"  # {source} 1 while the source delivers
FIELD_QUALITY: Final = "rightpool_field_quality"  # {field, quality} 1

LABEL_CHIP: Final = "chip"
LABEL_PART: Final = "part"
LABEL_REASON: Final = "reason"
LABEL_PIPE: Final = "pipe"
LABEL_KIND: Final = "kind"
LABEL_LINK: Final = "link"
LABEL_DIRECTION: Final = "direction"
LABEL_RANK: Final = "rank"
LABEL_NAME: Final = "name"
LABEL_SHARING: Final = "sharing"
SHARINGS: Final = ("none", "mig", "mps")

# Values of `reason`: why clocks are held down. Heat and faults of power are faults; the others are how it was set up.
REASON_POWER_CAP: Final = "power_cap"
REASONS_THERMAL: Final = ("software_thermal", "hardware_thermal")
REASONS_FAULT: Final = ("hardware_slowdown", "power_brake", *REASONS_THERMAL)
REASONS: Final = (REASON_POWER_CAP, *REASONS_FAULT, "application_clocks", "sync_boost")

# Values of `pipe`: parts of a compute unit.
PIPES: Final = ("fp64", "fp32", "fp16", "integer", "tensor_half", "tensor_fp64", "tensor_integer")

# Values of `link`, those between chips first, and of `direction` as the chip sees it.
LINKS_PEER: Final = ("nvlink", "xgmi", "ici")
LINK_PCIE: Final = "pcie"
DIRECTION_SENT: Final = "tx"
DIRECTION_RECEIVED: Final = "rx"

# Values of `kind` of errors.
ERROR_UNCORRECTED: Final = "ecc_uncorrected"
ERRORS: Final = (
    "ecc_corrected",
    ERROR_UNCORRECTED,
    "remapped_rows_corrected",
    "remapped_rows_uncorrected",
    "retired_pages",
)

# Labels of MODEL_INFO. An empty or absent one is unknown. The last four are degrees of parallelism.
LABEL_PRECISION: Final = "precision"
LABEL_PARAMETER_DTYPE: Final = "parameter_dtype"
MODEL_WORDS: Final = (LABEL_PRECISION, LABEL_PARAMETER_DTYPE)
MODEL_DEGREES: Final = ("data", "sharded", "tensor", "pipeline")

# Values of both words: names of arithmetic, as in the catalog's `peak_flops`.
MODEL_PRECISIONS: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")

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

# Further parts of a trace that a user asked for: time of the device in which the host prepares its next work. The rest
# is idle.
PART_LAUNCH: Final = "launch"

# Kinds of operations of a trace, by their names.
KIND_MATRIX: Final = "matrix"
KIND_ELEMENTWISE: Final = "elementwise"
KIND_REDUCTION: Final = "reduction"
KIND_COPY: Final = "copy"
KIND_COMMUNICATION: Final = "communication"
KIND_OTHER: Final = "other"
TRACE_KINDS: Final = (
    KIND_MATRIX,
    KIND_ELEMENTWISE,
    KIND_REDUCTION,
    KIND_COPY,
    KIND_COMMUNICATION,
    KIND_OTHER,
)

# What a program does at a moment of a trace.
PHASE_FORWARD: Final = "forward"
PHASE_BACKWARD: Final = "backward"
PHASE_OPTIMIZER: Final = "optimizer"
TRACE_PHASES: Final = (PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER)

TRACE_ALL: Final = "all"  # in place of a rank, in the annotation and in the request to the sidecar: all ranks

# States of a trace that a user asked for, as the sidecar answers.
TRACE_CAPTURED: Final = "captured"
TRACE_FAILED: Final = "failed"

# The event by which a trace of XLA says whose calls make the steps (the agent has the same name; a test compares them).
TRACE_MARK: Final = "rightpool.step"

# Why there is none, as the sidecar and the agent say it.
TRACE_REASONS: Final = (
    "NoRank",
    "NoAgent",
    "NoSteps",
    "StepTooLong",
    "UnsupportedFramework",
    "UnsupportedVersion",
    "JaxOnGPU",
    "NoMemory",
    "ProgramProfiles",
    "CaptureFailed",
    "TooLarge",
    "NoSpace",
    "Unreadable",
    "TimedOut",
    "TooManyRanks",
)

QUALITY_MEASURED: Final = "measured"
QUALITY_DERIVED: Final = "derived"
QUALITY_MISSING: Final = "missing"  # of SAMPLES: this pod makes steps, and what they consume is not known
