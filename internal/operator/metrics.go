package operator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// metricsOptions returns the options of the metrics server, which serves over TLS, and only clients with the token of
// a user with the right to get the path. OpenShift's Prometheus has a ServiceAccount with a ClusterRole for
// nonResourceURLs /metrics.
func (c Config) metricsOptions() metricsserver.Options {
	certificate := &servingCertificate{directory: c.MetricsCertificateDirectory, selfSigned: sync.OnceValues(selfSigned)}
	return metricsserver.Options{
		BindAddress:    c.MetricsAddress,
		SecureServing:  true,
		FilterProvider: newMetricsFilter,
		TLSOpts: []func(*tls.Config){func(t *tls.Config) {
			t.MinVersion = tls.VersionTLS12
			t.GetCertificate = certificate.get
		}},
	}
}

// maxMetricsRequests is the maximum number of concurrent requests for metrics. Each may cause requests to the API
// server, and any pod that reaches the port can make up tokens.
const maxMetricsRequests = 8

// newMetricsFilter returns the filter of controller-runtime, limited to a number of concurrent requests.
func newMetricsFilter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	filter, err := filters.WithAuthenticationAndAuthorization(config, client)
	if err != nil {
		return nil, fmt.Errorf("set up access reviews of metrics: %w", err)
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		filtered, err := filter(log, next)
		if err != nil {
			return nil, fmt.Errorf("set up access reviews of metrics: %w", err)
		}
		slots := make(chan struct{}, maxMetricsRequests)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				filtered.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		}), nil
	}, nil
}

// servingCertificate is the certificate in a directory of a mounted Secret, and follows its rotation. The
// Secret may be created after the start of the operator, or never in a cluster without a service CA: until then
// the certificate is self-signed.
type servingCertificate struct {
	directory  string
	selfSigned func() (*tls.Certificate, error)

	mu       sync.Mutex
	modified time.Time // modification time of the file read for current
	current  *tls.Certificate
}

// get implements tls.Config.GetCertificate.
func (s *servingCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.directory == "" {
		return s.selfSigned()
	}
	path := filepath.Join(s.directory, corev1.TLSCertKey)
	info, err := os.Stat(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && s.current != nil && info.ModTime().Equal(s.modified):
		return s.current, nil
	case errors.Is(err, fs.ErrNotExist) && s.current == nil:
		return s.selfSigned()
	case err == nil:
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(path, filepath.Join(s.directory, corev1.TLSPrivateKeyKey)); err == nil {
			s.current, s.modified = &pair, info.ModTime()
			return s.current, nil
		}
	}
	if s.current != nil {
		return s.current, nil // The files are being replaced or were removed: the previous certificate stays in use.
	}
	return nil, fmt.Errorf("read the metrics server's certificate from %s: %w", s.directory, err)
}

func selfSigned() (*tls.Certificate, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil,
		"")
	if err != nil {
		return nil, fmt.Errorf("create a certificate for the metrics server: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("create a certificate for the metrics server: %w", err)
	}
	return &pair, nil
}
