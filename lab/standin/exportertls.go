package standin

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// webServing is how an exporter serves: with TLS when its web configuration names a certificate.
// Source: github.com/prometheus/exporter-toolkit, web/tls_config.go.
type webServing struct {
	drive             node.Drive
	certificate, keys string // paths; empty without TLS
}

// loadWebConfig reads a web configuration file, and refuses to start where the certificate cannot be used.
func loadWebConfig(drive node.Drive, path string) (webServing, error) {
	s := webServing{drive: drive}
	if path == "" {
		return s, nil
	}
	content, err := drive.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("web configuration: %w", err)
	}
	var config struct {
		TLS *struct {
			Certificate  string   `json:"cert_file"`
			Key          string   `json:"key_file"`
			MinVersion   string   `json:"min_version"`
			CipherSuites []string `json:"cipher_suites"`
		} `json:"tls_server_config"`
	}
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		return s, fmt.Errorf("web configuration %s: %w", path, err)
	}
	if config.TLS == nil {
		return s, nil
	}
	// Paths are from the folder of the web configuration.
	from := func(name string) string {
		if strings.Contains(name, ":") {
			return name
		}
		return folder(path) + `\` + name
	}
	s.certificate, s.keys = from(config.TLS.Certificate), from(config.TLS.Key)
	_, err = s.load(nil)
	return s, err
}

// load reads the certificate for each connection, so that one that was renewed is served without a restart.
func (s webServing) load(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	certificate, err := s.drive.ReadFile(s.certificate)
	if err != nil {
		return nil, fmt.Errorf("failed to load X509KeyPair: %w", err)
	}
	key, err := s.drive.ReadFile(s.keys)
	if err != nil {
		return nil, fmt.Errorf("failed to load X509KeyPair: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("failed to load X509KeyPair: %w", err)
	}
	return &pair, nil
}

func (s webServing) listener(plain net.Listener) net.Listener {
	if s.certificate == "" {
		return plain
	}
	return tls.NewListener(plain, &tls.Config{GetCertificate: s.load, MinVersion: tls.VersionTLS12})
}

// only answers on the loopback address, where the simulated host carries requests without a connection, to the scheme
// that is served.
func (s webServing) only(handler http.Handler) http.Handler {
	scheme := "http"
	if s.certificate != "" {
		scheme = "https"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Scheme != "" && r.URL.Scheme != scheme {
			http.Error(w, "Client sent an "+strings.ToUpper(r.URL.Scheme)+" request to an "+strings.ToUpper(scheme)+" server.",
				http.StatusBadRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
