# `make help` lists what can be made. Nothing here needs more than Go, make, git and bash; only HOST=wine needs root.

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-builtin-rules

# The demo: how many test hosts, of which kind (fake: simulated, wine: Wine, for which it must be root), and whether to leave once all
# are Ready. Set on the command line only: HOST is a variable that some shells export.
HOSTS := 2
HOST  := fake
ONCE  :=
# A real Prometheus beside the demo, and a page with the dashboards.
MONITORING :=
ifeq ($(filter fake wine,$(HOST)),)
$(error HOST=$(HOST) is not a kind of test host: use HOST=fake or HOST=wine)
endif
ifeq ($(HOST) $(filter demo,$(MAKECMDGOALS)),wine demo)
ifneq ($(shell id -u),0)
$(error HOST=wine needs root for a chroot, mounts and network devices: run it as root, or use HOST=fake)
endif
endif

# The operator's version, as nodes and WindowsInstances show it.
VERSION := 12.0.0

# Extra flags for `go test`, say TESTFLAGS='-run TestSomething'.
TESTFLAGS :=

# The Kubernetes release that the lab's control plane is built from; lab/controlplane/go.mod pins the modules.
KUBERNETES_VERSION := v1.36.3

# Modules of the lab's control plane that the product does not have. They are compiled without debug information, and those through which not every
# request goes without inlining: the compiler takes a quarter less time for these, and the control plane boots as fast.
LAB_ONLY := k8s.io/kubernetes k8s.io/kube-aggregator github.com/google/cadvisor k8s.io/cloud-provider k8s.io/component-helpers \
  k8s.io/controller-manager k8s.io/csi-translation-lib k8s.io/dynamic-resource-allocation k8s.io/endpointslice k8s.io/kube-scheduler k8s.io/metrics \
  k8s.io/pod-security-admission github.com/container-storage-interface github.com/containerd github.com/cyphar \
  github.com/godbus gopkg.in/go-jose
LAB_HOT  := go.etcd.io github.com/gogo
LAB_FLAGS = $(foreach each,$(LAB_ONLY),'-gcflags=$(each)/...=-l -dwarf=false') $(foreach each,$(LAB_HOT),'-gcflags=$(each)/...=-dwarf=false')

# One module at a time, exactly the pinned versions, and no look at git: a checkout may belong to another user. Exported,
# because tests build programs as well. What the machine sets besides is kept. A make that calls make finds its own flags there.
export GOWORK  := off
export GOFLAGS := $(strip $(filter-out -buildvcs% -mod=% $(LAB_FLAGS),$(shell go env GOFLAGS)) -buildvcs=false -mod=readonly $(LAB_FLAGS))

# FIPS=1 builds operator and agent with Go's FIPS 140-3 module in the version that was submitted for validation, and has them use it: docs/dev/testing.md says more.
FIPS :=

# Builds programs by name, and says how far it is. Everything but the race detector goes without a C compiler. Compilers live
# for seconds: they collect no garbage before they have filled a gigabyte, which saves an eighth of the standard library's compile time.
BUILD          := GOGC=off GOMEMLIMIT=1GiB VERSION="$(VERSION)" KUBERNETES_VERSION="$(KUBERNETES_VERSION)" FIPS="$(FIPS)" hack/build
CONTROL_PLANE  := lab/controlplane
ACTIONLINT     := build/tools/actionlint
CONTROLLER_GEN := build/tools/controller-gen
CRD_REF_DOCS   := build/tools/crd-ref-docs
GOLANGCI_LINT  := build/tools/golangci-lint
GOVULNCHECK    := build/tools/govulncheck
GOTESTSUM      := build/tools/gotestsum

# A kubectl is built only for a demo that stays up, where the machine has none.
KUBECTL := $(if $(ONCE)$(shell command -v kubectl),,kubectl)

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##### Run

.PHONY: demo
demo: ## Start a real control plane, the operator and test hosts. HOSTS=2 HOST=fake|wine; ONCE=1 exits when all are Ready; MONITORING=1 adds Prometheus.
	@$(BUILD) $(PROGRAMS) $(if $(ONCE),,kubectl-windows) $(KUBECTL) $(if $(MONITORING),$(MONITORS))
	@exec build/lab demo --hosts $(HOSTS) --host $(HOST) $(if $(ONCE),--once) $(if $(MONITORING),--monitoring)

.PHONY: bench
bench: build ## Measure connections, bytes, requests and times in the lab, and compare them with the budgets.
	@exec build/lab bench

##### Build. Go's own cache knows what is out of date, so every binary is phony and a second run takes about a second.

PROGRAMS := lab-controlplane wmco wicd.exe lab
MONITORS := lab-prometheus lab-prometheus-operator

.PHONY: witness
witness: ## Build build/witness.exe, which compares a Windows machine with what the operator assumes. docs/first-host.md says more.
	@$(BUILD) witness.exe

.PHONY: build
build: ## Build everything that the demo and the tests run.
	@$(BUILD) $(PROGRAMS)

.PHONY: $(PROGRAMS:%=build/%) $(MONITORS:%=build/%) build/kubectl build/kubectl-windows
$(PROGRAMS:%=build/%) $(MONITORS:%=build/%) build/kubectl build/kubectl-windows: build/%:
	@$(BUILD) $*

# The tools, at the versions that tools/go.mod pins.
$(ACTIONLINT) $(CONTROLLER_GEN) $(CRD_REF_DOCS) $(GOLANGCI_LINT) $(GOVULNCHECK) $(GOTESTSUM): build/tools/%: tools/go.mod tools/go.sum
	@echo "building $@"
	@$(BUILD) $*

##### The payload: what runs on Windows nodes. docs/payload.md says more.

# Components to build (all, if none is named), where those that are no Go modules come from (a release image of OpenShift, with the mirrors of its
# images, or a list of files, or the sources with their sum), names of these that may be missing, folders of earlier payloads to make patches from, and a chroot with Wine in which executables are asked for their version: the one of the lab's Wine hosts, if there is one.
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
payload: build/wicd.exe ## Build what runs on Windows nodes. RELEASE=<OpenShift's release image>, COMPONENTS="kubelet cni", EXTERNAL=list.yaml, PREVIOUS=folder.
	@go run ./hack/payload -version "$(VERSION)" -components "$(COMPONENTS)" -release "$(RELEASE)" -mirrors "$(MIRRORS)" \
	  -external "$(EXTERNAL)" -source "$(SOURCE)" -source-sum "$(SOURCE_SUM)" -allow-missing "$(ALLOW_MISSING)" -previous "$(PREVIOUS)"

.PHONY: payload-reproducible
payload-reproducible: ## Build the payload's executables twice, in two places, and compare. COMPONENTS=cni
	@go run ./hack/payload -reproducible -components "$(COMPONENTS)"

##### The image, and the operator on a cluster. docs/install.md says more.

# What the image is built on (an OCI layout or a reference; nothing, if none is named), its payload, its platforms, and where it is pushed to.
# IMAGE is also what `make deploy` deploys and `make bundle` names.
IMAGE     :=
BASE      :=
PAYLOAD   := build/payload
PLATFORMS := linux/amd64 linux/arm64

.PHONY: image
image: ## Write the operator's image to build/image, an OCI layout. IMAGE=registry/name:tag pushes it. RELEASE= BASE= PAYLOAD= EXTERNAL= ALLOW_MISSING=
	@[[ "$(PAYLOAD)" != build/payload || -e build/payload/manifest.json ]] || $(MAKE) --no-print-directory payload
	@$(BUILD) wicd.exe $(addprefix operator-,$(subst /,-,$(PLATFORMS)))
	@go run ./hack/image -version "$(VERSION)" -payload "$(PAYLOAD)" -base "$(BASE)" -image "$(IMAGE)" -allow-missing "$(ALLOW_MISSING)" -within-budgets \
	  $(foreach each,$(PLATFORMS),-operator $(each)=build/operator/$(subst /,-,$(each)))

# The operator's namespace, and whether to take the operator away although nodes are left.
NAMESPACE := openshift-windows-machine-config-operator
FORCE     :=

# What is applied: deploy/, or an overlay of it, say overlays/openshift.
OVERLAY := deploy

# The machine's kubectl, or the lab's.
CLUSTER_KUBECTL := $(or $(shell command -v kubectl),build/kubectl)
ON_CLUSTER       = KUBECTL="$(CLUSTER_KUBECTL)" NAMESPACE="$(NAMESPACE)" IMAGE="$(IMAGE)" FORCE="$(FORCE)" OVERLAY="$(OVERLAY)" hack/deploy

.PHONY: deploy
deploy: $(filter build/kubectl,$(CLUSTER_KUBECTL)) ## Install the operator from IMAGE=registry/name:tag on the cluster that KUBECONFIG names. NAMESPACE= OVERLAY=overlays/openshift
	@$(ON_CLUSTER) apply

.PHONY: undeploy
undeploy: $(filter build/kubectl,$(CLUSTER_KUBECTL)) ## Remove the operator from the cluster; FORCE=1 does so even if it still has nodes. NAMESPACE=
	@$(ON_CLUSTER) delete

.PHONY: run
run: build/wmco $(filter build/kubectl,$(CLUSTER_KUBECTL)) ## Run the operator of this checkout on this machine, for the cluster that KUBECONFIG names. NAMESPACE= PAYLOAD=
	@$(ON_CLUSTER) run build/wmco --payload-dir="$(PAYLOAD)" --leader-elect=false

##### The bundle: how the Operator Lifecycle Manager gets the operator.

# For a bundle that can be installed: its image, the operator's (IMAGE), and that of each pod on a node, the last two by digest. Without, they are
# placeholders, as in deploy/olm. FLAVOR is redhat or community.
BUNDLE_IMAGE :=
PAUSE_IMAGE  :=
FLAVOR       := redhat
BUNDLE_DIR   := $(if $(IMAGE)$(BUNDLE_IMAGE)$(PAUSE_IMAGE)$(filter-out redhat,$(FLAVOR)),build/olm,deploy/olm)

.PHONY: bundle
bundle: ## Write the OLM bundle and its catalog entry to deploy/olm, or with IMAGE=<operator's> BUNDLE_IMAGE=<bundle's> PAUSE_IMAGE= FLAVOR=redhat|community to build/olm.
	@go run ./hack/bundle -version "$(VERSION)" -flavor "$(FLAVOR)" -image "$(IMAGE)" -pause-image "$(PAUSE_IMAGE)" \
	  -bundle-image "$(BUNDLE_IMAGE)" -out "$(BUNDLE_DIR)"

##### The release. docs/releasing.md says more.

# The plugin of kubectl is for the machines of administrators.
PLUGINS := $(foreach os,linux darwin windows,$(foreach arch,amd64 arm64,plugin-$(os)-$(arch)))

.PHONY: plugins
plugins: ## Build the plugin of kubectl for each platform that a release has it for.
	@$(BUILD) $(PLUGINS)

# The checkout may belong to another user.
GIT := git -c safe.directory="$(CURDIR)"

.PHONY: release
release: ## Write all that a release consists of to build/release. VERSION= IMAGE=registry/name:tag RELEASE= PREVIOUS=
	@[[ -z "$$($(GIT) status --porcelain)" ]] || { echo "make release: the checkout has changes that are in no commit: commit or remove them" >&2; exit 1; }
	@go run ./hack/release -version "$(VERSION)" -name "$(IMAGE)" -check
	@$(MAKE) --no-print-directory payload
	@$(MAKE) --no-print-directory image
	@$(MAKE) --no-print-directory plugins
	@go run ./hack/release -reference -name "$(IMAGE)" | tee build/release-image
	@$(MAKE) --no-print-directory bundle IMAGE="$$(cat build/release-image 2>/dev/null)" BUNDLE_DIR=build/olm
	@go run ./hack/release -version "$(VERSION)" -name "$(IMAGE)" -commit "$$($(GIT) rev-parse HEAD)"

##### Prove

# The packages with files for Windows.
WINDOWS_PACKAGES := ./cmd/wicd/... ./internal/agent/winservice/... ./internal/host/... ./lab/wine/components/guest/... ./lab/wine/internal/... ./lab/wine/refuse/... \
	./lab/wine/sshd/... ./lab/wine/standin/... ./test/wine/administrator/... ./test/witness/...

.PHONY: test
test: build $(GOTESTSUM) ## Run every unit and controller test, and one end-to-end story of each area (takes minutes).
	@hack/run-tests quick $(TESTFLAGS)

.PHONY: test-all
test-all: test test-rest ## Run all tests: make test and make test-rest.

.PHONY: test-rest
test-rest: build $(GOTESTSUM) ## Run what `make test` leaves out: all end-to-end tests, faults and kills, Wine, and the race detector.
	@hack/run-tests rest $(TESTFLAGS)

.PHONY: test-times
test-times: $(GOTESTSUM) ## Show the slowest tests of the last test runs.
	@[[ -n "$(wildcard build/test/*.json)" ]] || { echo "make test-times: there is no output of a test run: run make test first" >&2; exit 1; }
	@for file in $(wildcard build/test/quick.json build/test/rest.json); do \
	  echo "slowest tests in $$file"; $(GOTESTSUM) tool slowest --jsonfile $$file | awk '$$2 !~ "/" && n++ < 20'; done

# Rows of hack/defects/table to be seeded, say DEFECTS='R-095|claim'; all of them, if none is named.
DEFECTS :=

.PHONY: test-long
test-long: defects soak ## Run the tests that take too long for continuous integration: seeded defects, and a month in virtual time.

# Seeds of robustness runs, or how long new ones are tried, or a file with actions.
SEEDS   :=
FOR     :=
ACTIONS :=

.PHONY: robustness
robustness: build ## Let random administrators and random faults work on the operator. SEEDS="1 2" or FOR=1h or ACTIONS=build/robustness/large-seed-1.actions
	@[[ -n "$(SEEDS)$(FOR)$(ACTIONS)" ]] || { echo "make robustness: say SEEDS=, FOR= or ACTIONS=" >&2; exit 1; }
	@CGO_ENABLED=0 ROBUSTNESS_SEEDS="$(SEEDS)" ROBUSTNESS_FOR="$(FOR)" ROBUSTNESS_ACTIONS="$(abspath $(ACTIONS))" \
	  go test -vet=off -count=1 -timeout 0 -v -run TestSearch $(TESTFLAGS) ./test/robustness

# How many days of virtual time a soak has.
DAYS := 30

.PHONY: soak
soak: build ## Have a fleet live for a month of virtual time, and find what grows; takes most of an hour. DAYS=30
	@CGO_ENABLED=0 SOAK_DAYS="$(DAYS)" SOAK_RESULT="$(if $(filter 30,$(DAYS)),$(CURDIR)/docs/soak.md,$(CURDIR)/build/soak/result.md)" \
	  go test -vet=off -count=1 -timeout 0 -v -run TestNothingGrows $(TESTFLAGS) ./test/soak

.PHONY: fuzz
fuzz: ## Run each fuzz target for a time, one after the other. FOR=1m
	@CGO_ENABLED=0 hack/run-fuzz "$(or $(FOR),1m)"

.PHONY: defects
defects: build $(MONITORS:%=build/%) ## Seed small defects, one at a time; a named test must fail for each. DEFECTS=regexp
	@CGO_ENABLED=0 go run ./hack/defects -run "$(DEFECTS)"

.PHONY: verify
verify: check lint vulncheck ## Check everything except tests: generated files, format, vet, documents, lint, known vulnerabilities.

.PHONY: check
check: fresh vet ## Check generated files, format, vet, documents and workflows (make verify without lint and vulnerabilities).

.PHONY: fresh
fresh: $(ACTIONLINT) ## Check generated files, format, documents and workflows.
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

# What golangci-lint, which has govet in it, does not look at.
.PHONY: vet-modules
vet-modules:
	@echo "go vet of the other modules"
	@cd $(CONTROL_PLANE) && CGO_ENABLED=0 go vet ./...
	@cd hack/bundle/validate && CGO_ENABLED=0 go vet ./...
	@cd hack/powershell && CGO_ENABLED=0 go vet ./...
	@cd lab/prometheus && CGO_ENABLED=0 go vet ./...
	@cd lab/prometheusoperator && CGO_ENABLED=0 go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) vet-modules ## Run golangci-lint at its pinned version (its first build takes minutes).
	@echo "golangci-lint"
	@CGO_ENABLED=0 GOGC=200 $(GOLANGCI_LINT) run --allow-serial-runners ./...
	@CGO_ENABLED=0 GOGC=200 GOOS=windows GOARCH=amd64 $(GOLANGCI_LINT) run --allow-serial-runners $(WINDOWS_PACKAGES)

# The database is what GOVULNDB names, else https://vuln.go.dev. Where none answers this says so and passes.
.PHONY: vulncheck
vulncheck: $(GOVULNCHECK) ## Look for known vulnerabilities in code that operator, agent and lab call. GOVULNDB=file:///copy/of/the/database
	@echo "govulncheck"
	@hack/vulncheck/check $(GOVULNCHECK) linux:./cmd/wmco windows:./cmd/wicd linux:./lab/demo

##### Write

.PHONY: generate
generate: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Write generated files: deepcopy, CRDs, RBAC, docs/api.md, the OLM bundle, the tests in docs/requirements.md, the tables in docs/support.md, docs/metrics.md, docs/monitoring.md and docs/verified/results.md, the dashboard for Grafana.
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
