# `make help` lists all targets. The targets require only Go, make, git and bash; HOST=wine also requires root.

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-builtin-rules

# Variables of the demo: the number of test hosts, their kind (fake: simulated; wine: Wine, requires root), and whether
# the demo exits when all hosts are Ready. Only the command line sets these variables, because some shells export HOST.
HOSTS := 2
HOST  := fake
ONCE  :=
# MONITORING=1 adds a real Prometheus and a page with the dashboards to the demo.
MONITORING :=
ifeq ($(filter fake wine,$(HOST)),)
$(error HOST=$(HOST) is not a kind of test host: use HOST=fake or HOST=wine)
endif
ifeq ($(HOST) $(filter demo,$(MAKECMDGOALS)),wine demo)
ifneq ($(shell id -u),0)
$(error HOST=wine needs root for a chroot, mounts and network devices: run it as root, or use HOST=fake)
endif
endif

# The version of the operator, as shown by nodes and WindowsInstances.
VERSION := 12.0.0

# Additional flags for `go test`, for example TESTFLAGS='-run TestSomething'.
TESTFLAGS :=

# The Kubernetes release of the lab's control plane; lab/controlplane/go.mod pins the modules.
KUBERNETES_VERSION := v1.36.3

# Modules of the lab's control plane that the product does not use, compiled without debug information. The modules in
# LAB_ONLY are also compiled without inlining. This saves a quarter of the compile time, and the control plane starts as
# fast as before. The modules in LAB_HOT are on the path of every request.
LAB_ONLY := k8s.io/kubernetes k8s.io/kube-aggregator github.com/google/cadvisor k8s.io/cloud-provider k8s.io/component-helpers \
  k8s.io/controller-manager k8s.io/csi-translation-lib k8s.io/dynamic-resource-allocation k8s.io/endpointslice k8s.io/kube-scheduler k8s.io/metrics \
  k8s.io/pod-security-admission github.com/container-storage-interface github.com/containerd github.com/cyphar \
  github.com/godbus gopkg.in/go-jose
LAB_HOT  := go.etcd.io github.com/gogo
LAB_FLAGS = $(foreach each,$(LAB_ONLY),'-gcflags=$(each)/...=-l -dwarf=false') $(foreach each,$(LAB_HOT),'-gcflags=$(each)/...=-dwarf=false')

# Go builds one module at a time, with exactly the pinned versions, and without git: a checkout may belong to another
# user. The variables are exported, because tests also build programs. Other flags of the environment are kept. A
# recursive make first removes the flags added by the outer make.
export GOWORK  := off
export GOFLAGS := $(strip $(filter-out -buildvcs% -mod=% $(LAB_FLAGS),$(shell go env GOFLAGS)) -buildvcs=false -mod=readonly $(LAB_FLAGS))

# FIPS=1 builds the operator and the agent with Go's FIPS 140-3 module, in the version submitted for validation, and
# enables FIPS mode. See docs/dev/testing.md.
FIPS :=

# BUILD builds programs by name and prints progress. Only the race detector requires a C compiler. Compiler processes
# run for seconds and collect no garbage below 1 GiB of memory, which saves an eighth of the compile time of the
# standard library.
BUILD          := GOGC=off GOMEMLIMIT=1GiB VERSION="$(VERSION)" KUBERNETES_VERSION="$(KUBERNETES_VERSION)" FIPS="$(FIPS)" hack/build
CONTROL_PLANE  := lab/controlplane
ACTIONLINT     := build/tools/actionlint
CONTROLLER_GEN := build/tools/controller-gen
CRD_REF_DOCS   := build/tools/crd-ref-docs
GOLANGCI_LINT  := build/tools/golangci-lint
GOVULNCHECK    := build/tools/govulncheck
GOTESTSUM      := build/tools/gotestsum

# kubectl is built only for a demo without ONCE, on a machine without kubectl.
KUBECTL := $(if $(ONCE)$(shell command -v kubectl),,kubectl)

.PHONY: help
help: ## Display this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##### Run

.PHONY: demo
demo: ## Start a control plane, the operator and test hosts. HOSTS=2 HOST=fake|wine; ONCE=1 exits when all hosts are Ready; MONITORING=1 adds Prometheus.
	@$(BUILD) $(PROGRAMS) $(if $(ONCE),,kubectl-windows) $(KUBECTL) $(if $(MONITORING),$(MONITORS))
	@exec build/lab demo --hosts $(HOSTS) --host $(HOST) $(if $(ONCE),--once) $(if $(MONITORING),--monitoring)

.PHONY: picture
picture: ## Write the picture of the README, docs/monitoring/dashboard.png, from a demo with Prometheus (takes minutes; needs Chromium).
	@$(BUILD) $(PROGRAMS) kubectl-windows $(MONITORS)
	@hack/make-picture

.PHONY: bench
bench: build ## Run the benchmarks in the lab and compare connections, bytes, requests and times with the budgets.
	@exec build/lab bench

##### Build. Binaries are phony targets: Go's build cache detects stale packages, and a second build takes about 1 s.

PROGRAMS := lab-controlplane wmco wicd.exe lab
MONITORS := lab-prometheus lab-prometheus-operator

.PHONY: witness
witness: ## Build build/witness.exe, which checks the operator's assumptions on a Windows machine (docs/first-host.md).
	@$(BUILD) witness.exe

.PHONY: build
build: ## Build the programs for the demo and the tests.
	@$(BUILD) $(PROGRAMS)

.PHONY: $(PROGRAMS:%=build/%) $(MONITORS:%=build/%) build/kubectl build/kubectl-windows
$(PROGRAMS:%=build/%) $(MONITORS:%=build/%) build/kubectl build/kubectl-windows: build/%:
	@$(BUILD) $*

# The tools, at the versions pinned in tools/go.mod.
$(ACTIONLINT) $(CONTROLLER_GEN) $(CRD_REF_DOCS) $(GOLANGCI_LINT) $(GOVULNCHECK) $(GOTESTSUM): build/tools/%: tools/go.mod tools/go.sum
	@echo "building $@"
	@$(BUILD) $*

##### Payload: the programs for Windows nodes. See docs/payload.md.

# COMPONENTS names the components to build; the default is all. Components that are not Go modules come from an
# OpenShift release image (RELEASE, with MIRRORS for the images), from a list of files (EXTERNAL), or from sources and
# their checksum (SOURCE, SOURCE_SUM). ALLOW_MISSING names components that the payload may lack. PREVIOUS names
# directories of earlier payloads, for patches. WINE_ROOT is a chroot with Wine, which runs executables to query their
# versions; the default is the chroot of the lab's Wine hosts.
COMPONENTS    :=
RELEASE       :=
MIRRORS       :=
EXTERNAL      :=
SOURCE        :=
SOURCE_SUM    :=
ALLOW_MISSING :=
PREVIOUS      :=
export WINE_ROOT  ?= $(firstword $(wildcard build/wine/root-????????????))
export WINE_STATE ?= build/payload-wine

.PHONY: payload
payload: build/wicd.exe ## Build the payload for Windows nodes. RELEASE=<OpenShift release image> COMPONENTS="kubelet cni" MINORS="1.35 1.36" EXTERNAL=list.yaml PREVIOUS=<directories>
	@go run ./hack/payload -version "$(VERSION)" -components "$(COMPONENTS)" -minors "$(MINORS)" -release "$(RELEASE)" -mirrors "$(MIRRORS)" \
	  -external "$(EXTERNAL)" -source "$(SOURCE)" -source-sum "$(SOURCE_SUM)" -allow-missing "$(ALLOW_MISSING)" -previous "$(PREVIOUS)"

.PHONY: payload-reproducible
payload-reproducible: ## Check that two builds of the payload's executables are identical. COMPONENTS=cni
	@go run ./hack/payload -reproducible -components "$(COMPONENTS)" -minors "$(MINORS)"

##### Image and deployment. See docs/install.md.

# BASE is the base image, an OCI layout or a reference; the default is no base image. PAYLOAD is the directory of the
# payload. IMAGE is the reference for the push, and the image used by `make deploy` and `make bundle`.
IMAGE     :=
BASE      :=
PAYLOAD   := build/payload
PLATFORMS := linux/amd64 linux/arm64

.PHONY: image
image: ## Build the operator image as an OCI layout in build/image. IMAGE=registry/name:tag pushes the image. RELEASE= BASE= PAYLOAD= EXTERNAL= ALLOW_MISSING=
	@[[ "$(PAYLOAD)" != build/payload || -e build/payload/manifest.json ]] || $(MAKE) --no-print-directory payload
	@$(BUILD) wicd.exe $(addprefix operator-,$(subst /,-,$(PLATFORMS)))
	@go run ./hack/image -version "$(VERSION)" -payload "$(PAYLOAD)" -base "$(BASE)" -image "$(IMAGE)" -allow-missing "$(ALLOW_MISSING)" -within-budgets \
	  $(foreach each,$(PLATFORMS),-operator $(each)=build/operator/$(subst /,-,$(each)))

# The namespace of the operator. FORCE=1 skips the checks for remaining nodes and for an operator in another namespace.
NAMESPACE := openshift-windows-machine-config-operator
FORCE     :=

# The kustomization to apply: deploy/ or an overlay, for example overlays/openshift.
OVERLAY := deploy

# kubectl from PATH, or else the lab's kubectl.
CLUSTER_KUBECTL := $(or $(shell command -v kubectl),build/kubectl)
ON_CLUSTER       = KUBECTL="$(CLUSTER_KUBECTL)" NAMESPACE="$(NAMESPACE)" IMAGE="$(IMAGE)" FORCE="$(FORCE)" OVERLAY="$(OVERLAY)" hack/deploy

.PHONY: deploy
deploy: $(filter build/kubectl,$(CLUSTER_KUBECTL)) ## Deploy the operator to the cluster in KUBECONFIG. IMAGE=registry/name:tag NAMESPACE= OVERLAY=overlays/openshift
	@$(ON_CLUSTER) apply

.PHONY: undeploy
undeploy: $(filter build/kubectl,$(CLUSTER_KUBECTL)) ## Remove the operator from the cluster in KUBECONFIG; FORCE=1 ignores remaining nodes. NAMESPACE=
	@$(ON_CLUSTER) delete

.PHONY: run
run: build/wmco $(filter build/kubectl,$(CLUSTER_KUBECTL)) ## Run the operator on this machine for the cluster in KUBECONFIG. NAMESPACE= PAYLOAD=
	@$(ON_CLUSTER) run build/wmco --payload-dir="$(PAYLOAD)" --leader-elect=false

##### Bundle for the Operator Lifecycle Manager.

# An installable bundle requires BUNDLE_IMAGE, and by digest IMAGE (the operator) and PAUSE_IMAGE (for the pods on
# nodes). Without these variables, the bundle contains placeholders, as in deploy/olm. FLAVOR is redhat or community.
BUNDLE_IMAGE :=
PAUSE_IMAGE  :=
FLAVOR       := redhat
BUNDLE_DIR   := $(if $(IMAGE)$(BUNDLE_IMAGE)$(PAUSE_IMAGE)$(filter-out redhat,$(FLAVOR)),build/olm,deploy/olm)

.PHONY: bundle
bundle: ## Generate the OLM bundle and catalog entry in deploy/olm, or for installation in build/olm. IMAGE= BUNDLE_IMAGE= PAUSE_IMAGE= FLAVOR=redhat|community
	@go run ./hack/bundle -version "$(VERSION)" -flavor "$(FLAVOR)" -image "$(IMAGE)" -pause-image "$(PAUSE_IMAGE)" \
	  -bundle-image "$(BUNDLE_IMAGE)" -out "$(BUNDLE_DIR)"

##### Release. See docs/releasing.md.

# The platforms of the kubectl plugin, which runs on the machines of administrators.
PLUGINS := $(foreach os,linux darwin windows,$(foreach arch,amd64 arm64,plugin-$(os)-$(arch)))

.PHONY: plugins
plugins: ## Build the kubectl plugin for all platforms of a release.
	@$(BUILD) $(PLUGINS)

# The checkout may belong to another user.
GIT := git -c safe.directory="$(CURDIR)"

.PHONY: release
release: ## Build all files of a release in build/release. VERSION= IMAGE=registry/name:tag RELEASE= PREVIOUS=
	@[[ -z "$$($(GIT) status --porcelain)" ]] || { echo "make release: the checkout has changes that are in no commit: commit or remove them" >&2; exit 1; }
	@go run ./hack/release -version "$(VERSION)" -name "$(IMAGE)" -check
	@$(MAKE) --no-print-directory payload
	@$(MAKE) --no-print-directory image
	@$(MAKE) --no-print-directory plugins
	@go run ./hack/release -reference -name "$(IMAGE)" | tee build/release-image
	@$(MAKE) --no-print-directory bundle IMAGE="$$(cat build/release-image 2>/dev/null)" BUNDLE_DIR=build/olm
	@go run ./hack/release -version "$(VERSION)" -name "$(IMAGE)" -commit "$$($(GIT) rev-parse HEAD)"

##### Test and verify

# Packages with files for Windows.
WINDOWS_PACKAGES := ./cmd/wicd/... ./internal/agent/winservice/... ./internal/host/... ./lab/wine/components/guest/... ./lab/wine/internal/... ./lab/wine/refuse/... \
	./lab/wine/sshd/... ./lab/wine/standin/... ./test/wine/administrator/... ./test/witness/...

.PHONY: test
test: build $(GOTESTSUM) ## Run all unit and controller tests, and one end-to-end test of each area (takes minutes).
	@hack/run-tests quick $(TESTFLAGS)

.PHONY: test-all
test-all: test test-rest ## Run all tests (make test and make test-rest).

.PHONY: test-rest
test-rest: build $(GOTESTSUM) ## Run the tests that make test omits: the other end-to-end tests, fault injection, Wine, and the race detector.
	@hack/run-tests rest $(TESTFLAGS)

.PHONY: test-times
test-times: $(GOTESTSUM) ## Show the slowest tests of the last test runs.
	@[[ -n "$(wildcard build/test/*.json)" ]] || { echo "make test-times: there is no output of a test run: run make test first" >&2; exit 1; }
	@for file in $(wildcard build/test/quick.json build/test/rest.json); do \
	  echo "slowest tests in $$file"; $(GOTESTSUM) tool slowest --jsonfile $$file | awk '$$2 !~ "/" && n++ < 20'; done

# A regular expression for rows of hack/defects/table, for example DEFECTS='R-095|claim'; the default is all rows.
DEFECTS :=

.PHONY: test-long
test-long: defects soak ## Run the tests that take too long for CI: seeded defects, and a month in virtual time.

# Robustness runs use the given seeds, new seeds for the duration FOR, or a file with actions.
SEEDS   :=
FOR     :=
ACTIONS :=

.PHONY: robustness
robustness: build ## Run randomized administrator actions and faults. SEEDS="1 2" or FOR=1h or ACTIONS=build/robustness/large-seed-1.actions
	@[[ -n "$(SEEDS)$(FOR)$(ACTIONS)" ]] || { echo "make robustness: say SEEDS=, FOR= or ACTIONS=" >&2; exit 1; }
	@CGO_ENABLED=0 ROBUSTNESS_SEEDS="$(SEEDS)" ROBUSTNESS_FOR="$(FOR)" ROBUSTNESS_ACTIONS="$(abspath $(ACTIONS))" \
	  go test -vet=off -count=1 -timeout 0 -v -run TestSearch $(TESTFLAGS) ./test/robustness

# The duration of a soak in days of virtual time.
DAYS := 30

.PHONY: soak
soak: build ## Simulate a month of operation and check for resource growth (takes most of an hour). DAYS=30
	@CGO_ENABLED=0 SOAK_DAYS="$(DAYS)" SOAK_RESULT="$(if $(filter 30,$(DAYS)),$(CURDIR)/docs/soak.md,$(CURDIR)/build/soak/result.md)" \
	  go test -vet=off -count=1 -timeout 0 -v -run TestNothingGrows $(TESTFLAGS) ./test/soak

.PHONY: fuzz
fuzz: ## Run each fuzz target for the given time. FOR=1m
	@CGO_ENABLED=0 hack/run-fuzz "$(or $(FOR),1m)"

.PHONY: defects
defects: build $(MONITORS:%=build/%) ## Seed defects, one at a time, and check that the named tests fail. DEFECTS=regexp
	@CGO_ENABLED=0 go run ./hack/defects -run "$(DEFECTS)"

.PHONY: verify
verify: check lint vulncheck ## Run all checks except tests (make check, make lint and make vulncheck).

.PHONY: check
check: fresh vet ## Check generated files, formatting, vet, documents and workflows (make fresh and make vet).

.PHONY: fresh
fresh: $(ACTIONLINT) ## Check generated files, formatting, documents and workflows.
	@hack/verify-generated
	@unformatted="$$(gofmt -l .)"; \
	  [[ -z "$$unformatted" ]] || { printf 'not formatted, run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; }
	@go run ./hack/requirements -check
	@go run ./hack/lint-prose
	@cd hack/powershell && CGO_ENABLED=0 go run . ../../internal/userdata/testdata/*.ps1
	@$(ACTIONLINT) -shellcheck= -pyflakes=

.PHONY: vet
vet: vet-modules ## Run go vet on all modules.
	@echo "go vet"
	@CGO_ENABLED=0 go vet ./...
	@CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go vet $(WINDOWS_PACKAGES)

# golangci-lint, which includes govet, checks only the main module.
.PHONY: vet-modules
vet-modules:
	@echo "go vet of the other modules"
	@cd $(CONTROL_PLANE) && CGO_ENABLED=0 go vet ./...
	@cd hack/bundle/validate && CGO_ENABLED=0 go vet ./...
	@cd hack/powershell && CGO_ENABLED=0 go vet ./...
	@cd lab/prometheus && CGO_ENABLED=0 go vet ./...
	@cd lab/prometheusoperator && CGO_ENABLED=0 go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) vet-modules ## Run golangci-lint (the first build of the linter takes minutes).
	@echo "golangci-lint"
	@CGO_ENABLED=0 GOGC=200 $(GOLANGCI_LINT) run --allow-serial-runners ./...
	@CGO_ENABLED=0 GOGC=200 GOOS=windows GOARCH=amd64 $(GOLANGCI_LINT) run --allow-serial-runners $(WINDOWS_PACKAGES)

# GOVULNDB is the URL of the database; the default is https://vuln.go.dev. If the default is unreachable, the target
# prints a notice and succeeds.
.PHONY: vulncheck
vulncheck: $(GOVULNCHECK) ## Run govulncheck on the operator, the agent and the lab. GOVULNDB=file:///copy/of/the/database
	@echo "govulncheck"
	@hack/vulncheck/check $(GOVULNCHECK) linux:./cmd/wmco windows:./cmd/wicd linux:./lab/demo

##### Generate and format

.PHONY: generate
generate: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Generate deepcopy code, CRDs, RBAC, docs/api.md, the OLM bundle, the Grafana dashboard and the generated tables in docs/.
	@$(CONTROLLER_GEN) object paths=./api/...
	@$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=deploy/crd
	@$(CONTROLLER_GEN) rbac:roleName=windows-machine-config-operator \
	  paths=./internal/controller/... paths=./internal/operator/... output:rbac:dir=deploy/rbac
	@$(CRD_REF_DOCS) --log-level=ERROR --source-path=api --renderer=markdown --config=hack/apireference/config.yaml \
	  --templates-dir=hack/apireference/templates --output-path=docs/api.md
	@go run ./hack/bundle -version "$(VERSION)"
	@go run ./hack/requirements
	@CGO_ENABLED=0 go test -vet=off -count=1 -run '^TestGenerated' ./docs ./internal/controller/monitoring -update

.PHONY: fmt
fmt: ## Format all Go code.
	@gofmt -w .
