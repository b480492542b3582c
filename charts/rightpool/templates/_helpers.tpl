{{- define "rightpool.name" -}}
{{- if contains "rightpool" .Release.Name }}{{ .Release.Name | trunc 46 | trimSuffix "-" }}{{ else }}{{ printf "%s-rightpool" .Release.Name | trunc 46 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "rightpool.selector" -}}
app.kubernetes.io/name: rightpool
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The pod of `helm test`, which is none of the operator's. */ -}}
{{- define "rightpool.testSelector" -}}
app.kubernetes.io/name: rightpool-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rightpool.labels" -}}
{{ include "rightpool.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* image with tag or digest: dict "image" .Values.image "root" . */ -}}
{{- define "rightpool.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}{{ else }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "rightpool.keySecret" -}}
{{- .Values.sidecarKey.existingSecret | default (printf "%s-sidecar-key" (include "rightpool.name" .)) }}
{{- end }}

{{- /* What the values say of chips and prices, in JSON; empty where they say nothing. */ -}}
{{- define "rightpool.catalog" -}}
{{- if or .Values.catalog.chips .Values.catalog.prices }}{{ toJson .Values.catalog }}{{ end }}
{{- end }}

{{- /* What is done in the namespaces that are looked after. */ -}}
{{- define "rightpool.namespacedRules" -}}
# Those of objects with the label rightpool.dev/adopt are made, follow the label, and go with it.
- apiGroups: [rightpool.dev]
  resources: [profiledjobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rightpool.dev]
  resources: [profiledjobs/status]
  verbs: [patch]
# Nothing is written there. Where OwnerReferencesPermissionEnforcement is on (OpenShift), nobody else may make a Job whose
# owner's deletion waits for it.
- apiGroups: [rightpool.dev]
  resources: [profiledjobs/finalizers]
  verbs: [update]
# What jobs run as: Jobs, and JobSets, TrainJobs and LeaderWorkerSets where JobSet, Trainer and LeaderWorkerSet are
# installed; servers as Deployments.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [trainer.kubeflow.org]
  resources: [trainjobs]
  verbs: [get, list, watch, create, patch, delete]
# Each TrainJob has a runtime of its own, made of the one that its user names.
- apiGroups: [trainer.kubeflow.org]
  resources: [trainingruntimes]
  verbs: [get, create, update]
# Where a suspended job is in a queue of Kueue, which would resume its Job.
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [list, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, create, patch, delete]
{{- if .Values.httpRoutes.enabled }}
# Weights by which a move of a server shares its requests.
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [get, patch]
{{- end }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if include "rightpool.admitsProfiler" . }}
# What new pods of adopted objects get: see the policy that puts it into them.
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [list, create, patch, delete]
{{- end }}
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [list]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create, patch]
{{- end }}

{{- /* Whether the API server can add the profiler to pods of adopted objects, from Kubernetes 1.36 on; empty: not. */ -}}
{{- define "rightpool.admitsProfiler" -}}
{{- if and .Values.admission.enabled (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") }}true{{ end }}
{{- end }}

{{- /* Port of a URL: the one that it names, else its scheme's. */ -}}
{{- define "rightpool.portOfURL" -}}
{{- $url := urlParse . }}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) }}
{{- end }}
