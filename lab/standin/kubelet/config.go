package kubelet

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// configuration is the combination of flags and configuration file.
type configuration struct {
	settings
	nodeName        string
	nodeIP          string
	runtimeEndpoint string
	labels          map[string]string
	taints          []corev1.Taint
	healthzPort     int
	port            int
	maxPods         int64
	clientCA        *x509.CertPool // nil: no client certificate is known
	clientCAPEM     []byte
	authorize       bool // clients need authorization by the API server
	anonymous       bool
	servingCSR      bool
	rotateClient    bool
	statusInterval  time.Duration // between local checks of the node's status
	reportInterval  time.Duration // between reports of an unchanged status
	leaseSeconds    int32
}

func loadConfiguration(machine node.Machine, version string, args []string) (configuration, error) {
	s, err := parseFlags(version, args)
	if err != nil {
		return configuration{}, err
	}
	file := &kubeletconfig.KubeletConfiguration{}
	if s.config != "" {
		if file, err = loadFile(machine, s.config); err == nil {
			err = validate(file, minorVersion(version))
		}
		if err != nil {
			return configuration{}, err
		}
	}
	if s.imageCredentialConfig != "" {
		if err := machine.CheckExists(s.imageCredentialConfig); err != nil {
			return configuration{}, fmt.Errorf("failed to register CRI auth plugins: unable to access path %q: %w",
				s.imageCredentialConfig, err)
		}
	}
	c := configuration{
		settings:        s,
		nodeName:        strings.ToLower(orDefault(s.hostname, machine.Name())),
		runtimeEndpoint: normalizeEndpoint(orDefault(s.runtimeEndpoint, file.ContainerRuntimeEndpoint)),
		healthzPort:     int(ptr.Deref(file.HealthzPort, 10248)),
		port:            int(orDefault(file.Port, 10250)),
		maxPods:         int64(orDefault(file.MaxPods, 110)),
		authorize: orDefault(file.Authorization.Mode,
			kubeletconfig.KubeletAuthorizationModeWebhook) == kubeletconfig.KubeletAuthorizationModeWebhook,
		anonymous:      ptr.Deref(file.Authentication.Anonymous.Enabled, false),
		servingCSR:     file.ServerTLSBootstrap,
		rotateClient:   file.RotateCertificates || s.rotateCertificates,
		statusInterval: orDefault(file.NodeStatusUpdateFrequency.Duration, 10*time.Second),
		reportInterval: orDefault(file.NodeStatusReportFrequency.Duration, 5*time.Minute),
		leaseSeconds:   orDefault(file.NodeLeaseDurationSeconds, 40),
	}
	if c.nodeIP = s.nodeIP; c.nodeIP == "" {
		if addresses := machine.Addresses(); len(addresses) > 0 {
			c.nodeIP = addresses[0]
		}
	}
	if c.taints, err = mergeTaints(file.RegisterWithTaints, s.registerWithTaints); err != nil {
		return configuration{}, err
	}
	c.labels = map[string]string{}
	for _, label := range s.nodeLabels {
		key, value, _ := strings.Cut(label, "=")
		c.labels[key] = value
	}
	return c, c.loadClientCA(machine, file.Authentication.X509.ClientCAFile)
}

// normalizeEndpoint returns an endpoint with two slashes, also for the form npipe:////./pipe/name.
func normalizeEndpoint(endpoint string) string {
	if endpoint == "" {
		return "npipe://./pipe/containerd-containerd"
	}
	return strings.Replace(endpoint, "npipe:////./", "npipe://./", 1)
}

func loadFile(machine node.Machine, path string) (*kubeletconfig.KubeletConfiguration, error) {
	data, err := machine.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("failed to load kubelet config file, path: %s, error: failed to read kubelet config file %q, error: %w", path, path, err)
	}
	file := &kubeletconfig.KubeletConfiguration{}
	if err := yaml.UnmarshalStrict(data, file); err != nil {
		return nil, fmt.Errorf("failed to load kubelet config file, path: %s, error: failed to decode: %w", path, err)
	}
	if file.Kind != "KubeletConfiguration" || file.APIVersion != kubeletconfig.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("failed to load kubelet config file, path: %s, error: no kind %q is registered for version %q",
			path, file.Kind, file.APIVersion)
	}
	return file, nil
}

// lockedLogQuery is the minor version of Kubernetes in which the gate NodeLogQuery was locked to true.
const lockedLogQuery = 36

// ungatedBackOff is the minor version of Kubernetes from which the fields below need no feature gate.
const ungatedBackOff = 35

// validate refuses configurations that the kubelet's own validation refuses, to the extent that tests need.
// Source: k8s.io/kubernetes/pkg/kubelet/apis/config/validation.
func validate(file *kubeletconfig.KubeletConfiguration, minor int) error {
	switch gate, set := file.FeatureGates["NodeLogQuery"]; {
	case minor < lockedLogQuery && !gate && ptr.Deref(file.EnableSystemLogQuery, false):
		return errors.New("failed to validate kubelet configuration, error: invalid configuration: NodeLogQuery feature gate is required for enableSystemLogHandler")
	case minor >= lockedLogQuery && set && !gate:
		return errors.New("failed to set feature gates from initial flags-based config: cannot set feature gate NodeLogQuery to false, feature is locked to true")
	}
	if minor < ungatedBackOff {
		if file.CrashLoopBackOff.MaxContainerRestartPeriod != nil && !file.FeatureGates["KubeletCrashLoopBackOffMax"] {
			return errors.New("failed to validate kubelet configuration, error: invalid configuration: FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set")
		}
		if file.ImagePullCredentialsVerificationPolicy != "" && !file.FeatureGates["KubeletEnsureSecretPulledImages"] {
			return errors.New("failed to validate kubelet configuration, error: invalid configuration: `imagePullCredentialsVerificationPolicy` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled")
		}
	}
	low, high := ptr.Deref(file.ImageGCLowThresholdPercent, 80), ptr.Deref(file.ImageGCHighThresholdPercent, 85)
	if low >= high {
		return fmt.Errorf("failed to validate kubelet configuration, error: invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) %d must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) %d",
			low, high)
	}
	return nil
}

func (c *configuration) loadClientCA(machine node.Machine, path string) error {
	if path == "" {
		return nil
	}
	data, err := machine.ReadFile(path)
	if err != nil {
		return fmt.Errorf("unable to load client CA file %s: %w", path, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return fmt.Errorf("unable to load client CA file %s: it holds no certificate", path)
	}
	c.clientCA, c.clientCAPEM = pool, data
	return nil
}

// mergeTaints parses flags of the form key=value:effect and adds them to the taints of the file.
func mergeTaints(fromFile []corev1.Taint, fromFlag []string) ([]corev1.Taint, error) {
	all := append([]corev1.Taint(nil), fromFile...)
	for _, text := range fromFlag {
		pair, effect, ok := strings.Cut(text, ":")
		if !ok {
			return nil, fmt.Errorf("invalid taint %q in --register-with-taints: want key=value:effect", text)
		}
		key, value, _ := strings.Cut(pair, "=")
		all = append(all, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return all, nil
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
