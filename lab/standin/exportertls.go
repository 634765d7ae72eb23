package standin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// webServing serves with TLS if the web configuration contains a certificate. The configuration and its files
// are read for each connection, so that new files need no restart. Source:
// github.com/prometheus/exporter-toolkit, web/tls_config.go.
type webServing struct {
	drive node.Drive
	path  string // of the web configuration; empty without TLS
}

// serverConfig is the part of a web configuration that the simulated programs evaluate.
type serverConfig struct {
	Certificate  string   `json:"cert_file"`
	Key          string   `json:"key_file"`
	ClientAuth   string   `json:"client_auth_type"`
	ClientCA     string   `json:"client_ca_file"`
	MinVersion   string   `json:"min_version"`
	CipherSuites []string `json:"cipher_suites"`
}

// loadWebConfig loads a web configuration file and returns an error if it is invalid.
func loadWebConfig(drive node.Drive, path string) (webServing, error) {
	s := webServing{drive, path}
	if path == "" {
		return s, nil
	}
	config, err := s.tlsConfig(nil)
	if config == nil {
		s.path = ""
	}
	return s, err
}

// tlsConfig implements tls.Config.GetConfigForClient. It returns nil for a configuration without TLS.
func (s webServing) tlsConfig(*tls.ClientHelloInfo) (*tls.Config, error) {
	content, err := s.drive.ReadFile(s.path)
	if err != nil {
		return nil, fmt.Errorf("web configuration: %w", err)
	}
	var file struct {
		TLS *serverConfig `json:"tls_server_config"`
	}
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		return nil, fmt.Errorf("web configuration %s: %w", s.path, err)
	}
	if file.TLS == nil {
		return nil, nil
	}
	pair, err := s.loadCertificate(file.TLS)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return config, s.setClientAuth(config, file.TLS)
}

func (s webServing) loadCertificate(file *serverConfig) (tls.Certificate, error) {
	certificate, err := s.drive.ReadFile(s.resolvePath(file.Certificate))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("failed to load X509KeyPair: %w", err)
	}
	key, err := s.drive.ReadFile(s.resolvePath(file.Key))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("failed to load X509KeyPair: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("failed to load X509KeyPair: %w", err)
	}
	return pair, nil
}

// setClientAuth sets the client authentication that the file requires.
func (s webServing) setClientAuth(config *tls.Config, file *serverConfig) error {
	switch file.ClientAuth {
	case "", "NoClientCert":
		if file.ClientCA != "" {
			return errors.New("client CA's have been configured without a Client Auth Policy")
		}
		return nil
	case "RequireAndVerifyClientCert":
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	default:
		return errors.New("invalid ClientAuth: " + file.ClientAuth)
	}
	authorities, err := s.drive.ReadFile(s.resolvePath(file.ClientCA))
	config.ClientCAs.AppendCertsFromPEM(authorities)
	return err
}

// resolvePath returns the path of a file in a web configuration, relative to the directory of the configuration.
func (s webServing) resolvePath(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return parentDirectory(s.path) + `\` + name
}

func (s webServing) wrapListener(plain net.Listener) net.Listener {
	if s.path == "" {
		return plain
	}
	return tls.NewListener(plain, &tls.Config{GetConfigForClient: s.tlsConfig, MinVersion: tls.VersionTLS12})
}

// restrictLocal restricts requests on the loopback address, where the simulated host carries requests without a
// connection. It accepts only the served scheme, and only clients with a certificate if certificates are
// required.
func (s webServing) restrictLocal(handler http.Handler) http.Handler {
	scheme := "http"
	if s.path != "" {
		scheme = "https"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Scheme != "" && r.URL.Scheme != scheme {
			http.Error(w, "Client sent an "+strings.ToUpper(r.URL.Scheme)+" request to an "+strings.ToUpper(scheme)+" server.",
				http.StatusBadRequest)
			return
		}
		if err := s.checkClient(r.TLS); err != nil {
			http.Error(w, "remote error: tls: "+err.Error(), http.StatusForbidden) // instead of a failed handshake
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// checkClient returns the error with which the handshake with a client would have failed.
func (s webServing) checkClient(client *tls.ConnectionState) error {
	if s.path == "" {
		return nil
	}
	config, err := s.tlsConfig(nil)
	if err != nil || config == nil || config.ClientAuth == tls.NoClientCert {
		return err
	}
	if client == nil || len(client.PeerCertificates) == 0 {
		return errors.New("certificate required")
	}
	_, err = client.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: config.ClientCAs,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}
