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

// metricsOptions serve metrics over TLS, to clients with a token of a user who may get the path: a Prometheus whose
// ServiceAccount has a ClusterRole with nonResourceURLs /metrics, as OpenShift's has.
func (c Config) metricsOptions() metricsserver.Options {
	certificate := &servingCertificate{directory: c.MetricsCertificateDirectory, selfSigned: sync.OnceValues(selfSigned)}
	return metricsserver.Options{
		BindAddress:    c.MetricsAddress,
		SecureServing:  true,
		FilterProvider: authorizedReaders,
		TLSOpts: []func(*tls.Config){func(t *tls.Config) {
			t.MinVersion = tls.VersionTLS12
			t.GetCertificate = certificate.get
		}},
	}
}

// maxMetricsRequests is the number of requests for metrics at a time. Each may lead to requests to the API server, and any
// pod that reaches the port can make tokens up.
const maxMetricsRequests = 8

// authorizedReaders returns the filter of controller-runtime, for a limited number of requests at a time.
func authorizedReaders(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
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

// servingCertificate is the one in a folder, as a mounted Secret has it, and follows its rotation. The Secret may come
// after the operator has started, or never, where no service CA makes one: until then the certificate is self-signed.
type servingCertificate struct {
	directory  string
	selfSigned func() (*tls.Certificate, error)

	mu       sync.Mutex
	modified time.Time // of the file that current was read from
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
		return s.current, nil // The files are being replaced, or were taken away: what was right before is still.
	}
	return nil, fmt.Errorf("read the metrics server's certificate from %s: %w", s.directory, err)
}

func selfSigned() (*tls.Certificate, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil,
		"")
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the metrics server: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the metrics server: %w", err)
	}
	return &pair, nil
}
