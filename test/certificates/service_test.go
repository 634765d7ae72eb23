package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// kubeletPort is the kubelet's port for connections from the API server.
const kubeletPort = "10250"

// checkInterval is the interval between checks of a watched node.
const checkInterval = 500 * time.Millisecond

// witness checks a node continuously, as the API server does: whether the kubelet is alive and has a valid
// certificate.
type witness struct {
	lab  lab
	host *testenv.Host
	stop func()

	mu       sync.Mutex
	failures []string
	serials  map[string]bool // of the observed serving certificates
}

// watchNode starts to check a node after its kubelet serves.
func (l lab) watchNode(h *testenv.Host) *witness {
	l.Helper()
	w := &witness{lab: l, host: h, serials: map[string]bool{}}
	l.waitUntil(waitTimeout, "the kubelet of "+h.Options.Name+" to serve", func() bool { return w.checkNode(l.Context()) == nil })
	ctx, cancel := context.WithCancel(l.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if err := w.checkNode(ctx); err != nil && ctx.Err() == nil {
				w.mu.Lock()
				w.failures = append(w.failures, time.Now().Format("15:04:05.000")+" "+err.Error())
				w.mu.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(checkInterval):
			}
		}
	})
	w.stop = func() { cancel(); group.Wait() }
	l.Cleanup(w.stop)
	return w
}

// checkNode performs one check.
func (w *witness) checkNode(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	leaf, err := w.fetchServingCertificate(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.serials[leaf.SerialNumber.String()] = true
	w.mu.Unlock()
	lease := &coordinationv1.Lease{}
	if err := w.lab.Client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: w.host.NodeName()},
		lease); err != nil {
		return err
	}
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return errors.New("its lease was never renewed")
	}
	if age := time.Since(lease.Spec.RenewTime.Time); age > time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second {
		return fmt.Errorf("its lease was not renewed for %s", age)
	}
	return nil
}

// fetchServingCertificate returns the kubelet's serving certificate, verified as the API server does.
func (w *witness) fetchServingCertificate(ctx context.Context) (*x509.Certificate, error) {
	authority, err := w.lab.Cluster().CSRSigner()
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Leaf)
	raw, err := w.lab.Network().DialContext(ctx, "tcp", net.JoinHostPort(w.host.Options.Address, kubeletPort))
	if err != nil {
		return nil, err
	}
	connection := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: w.host.Options.Address,
		MinVersion: tls.VersionTLS12})
	defer func() { _ = connection.Close() }() // nothing was sent
	if err := connection.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return connection.ConnectionState().PeerCertificates[0], nil
}

// stopWatch ends the watch, and returns the failures and the number of certificates.
func (w *witness) stopWatch() (failures []string, certificates int) {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failures, len(w.serials)
}

// inUse returns the certificate behind a link on the host, or nil if there is none.
func inUse(h *testenv.Host, link string) *x509.Certificate {
	data, err := h.Machine().Drive().ReadFile(link)
	if err != nil {
		return nil
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if leaf, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
			return leaf
		}
	}
	return nil
}
