package kubelet

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/pflag"
	k8sversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubelet/pkg/apis"
)

// settings are the flags that the simulated kubelet evaluates.
type settings struct {
	config, kubeconfig, certDir        string
	hostname, nodeIP, cloudProvider    string
	runtimeEndpoint, providerID        string
	imageCredentialConfig, resolvConf  string
	nodeLabels, registerWithTaints     []string
	rotateCertificates, windowsService bool
}

// Flags of the kubelet on Windows that the simulated kubelet accepts without effect. Source:
// cmd/kubelet/app/options of k8s.io/kubernetes v1.36.3, and the logging flags of k8s.io/component-base.
var (
	ignoredStrings = strings.Fields(`address allowed-unsafe-sysctls authentication-token-webhook-cache-ttl authorization-mode
		authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl bootstrap-kubeconfig cgroup-driver cgroup-root
		client-ca-file cluster-dns cluster-domain config-dir container-log-max-files container-log-max-size cpu-cfs-quota-period
		cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period enforce-node-allocatable event-burst event-qps eviction-hard
		eviction-max-pod-grace-period eviction-minimum-reclaim eviction-pressure-transition-period eviction-soft eviction-soft-grace-period
		experimental-mounter-path feature-gates file-check-frequency hairpin-mode healthz-bind-address healthz-port http-check-frequency
		image-credential-provider-bin-dir image-gc-high-threshold image-gc-low-threshold image-service-endpoint kube-api-burst
		kube-api-content-type kube-api-qps kube-reserved kube-reserved-cgroup kubelet-cgroups lock-file log-flush-frequency
		log-json-info-buffer-size log-text-info-buffer-size logging-format manifest-url manifest-url-header max-open-files max-pods
		maximum-dead-containers maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration
		minimum-image-ttl-duration node-status-max-images node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path pod-max-pids
		pods-per-core port qos-reserved read-only-port registry-burst registry-qps reserved-cpus reserved-memory root-dir runtime-cgroups
		runtime-request-timeout streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved system-reserved-cgroup
		tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file topology-manager-policy topology-manager-policy-options
		topology-manager-scope v vmodule volume-plugin-dir volume-stats-agg-period windows-priorityclass`)
	ignoredBools = strings.Fields(`anonymous-auth authentication-token-webhook cgroups-per-qos contention-profiling cpu-cfs-quota
		enable-controller-attach-detach enable-debugging-handlers enable-server exit-on-lock-contention
		experimental-allocatable-ignore-eviction fail-cgroupv1 fail-swap-on kernel-memcg-notification local-storage-capacity-isolation
		log-json-split-stream log-text-split-stream make-iptables-util-chains protect-kernel-defaults register-node
		rotate-server-certificates runonce seccomp-default serialize-image-pulls`)
)

// removedFlags are flags without effect that kubelets had before a minor version of Kubernetes 1.
var removedFlags = map[string]int{"container-runtime": 27, "log-dir": 26, "log-file": 26, "logtostderr": 26}

// minorVersion returns 24 for "v1.24.6"; an invalid version counts as the newest.
func minorVersion(version string) int {
	parsed, err := k8sversion.ParseSemantic(version)
	if err != nil {
		return math.MaxInt
	}
	return int(parsed.Minor())
}

// parseFlags parses the command line of a kubelet version and refuses the flags that this version refuses.
func parseFlags(version string, args []string) (settings, error) {
	var s settings
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.config, "config", "", "")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&s.certDir, "cert-dir", `C:\var\lib\kubelet\pki`, "")
	flags.StringVar(&s.hostname, "hostname-override", "", "")
	flags.StringVar(&s.nodeIP, "node-ip", "", "")
	flags.StringVar(&s.cloudProvider, "cloud-provider", "", "")
	flags.StringVar(&s.providerID, "provider-id", "", "")
	flags.StringVar(&s.runtimeEndpoint, "container-runtime-endpoint", "", "")
	flags.StringVar(&s.imageCredentialConfig, "image-credential-provider-config", "", "")
	flags.StringVar(&s.resolvConf, "resolv-conf", "", "")
	flags.StringSliceVar(&s.nodeLabels, "node-labels", nil, "")
	flags.StringSliceVar(&s.registerWithTaints, "register-with-taints", nil, "")
	flags.BoolVar(&s.rotateCertificates, "rotate-certificates", false, "")
	flags.BoolVar(&s.windowsService, "windows-service", false, "")
	for _, name := range ignoredStrings {
		flags.String(name, "", "")
	}
	for _, name := range ignoredBools {
		flags.Bool(name, false, "")
	}
	for name, removed := range removedFlags {
		if minorVersion(version) < removed {
			flags.String(name, "", "")
		}
	}
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	if err := flags.Parse(args); err != nil {
		return s, fmt.Errorf("failed to parse kubelet flag: %w", err)
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unknown command %q", flags.Args())
	}
	return s, validateLabels(s.nodeLabels)
}

// validateLabels refuses labels in the namespaces of Kubernetes that a kubelet must not set on its node.
func validateLabels(labels []string) error {
	var unknown []string
	for _, label := range labels {
		key, _, ok := strings.Cut(label, "=")
		if !ok {
			return fmt.Errorf("invalid label %q in --node-labels: want key=value", label)
		}
		if !canKubeletSet(key) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: %q", unknown)
	}
	return nil
}

func canKubeletSet(key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	in := func(domain string) bool { return namespace == domain || strings.HasSuffix(namespace, "."+domain) }
	return !in("kubernetes.io") && !in("k8s.io") || apis.IsKubeletLabel(key)
}
