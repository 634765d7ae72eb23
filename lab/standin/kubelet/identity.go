package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr/funcr"
	certificatesv1 "k8s.io/api/certificates/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"

	"github.com/windows-machine-config/wmco/lab/standin/kubeconfig"
)

const (
	// rotationCheckInterval is the interval between checks whether the certificate was rotated or has expired.
	rotationCheckInterval = 5 * time.Second
	// missingCertTimeout is the maximum time that the kubelet runs without a valid certificate.
	missingCertTimeout = 5 * time.Minute
)

// identity is the kubelet's client certificate with its dependent objects.
type identity struct {
	k           *kubelet
	manager     certificate.Manager // nil without rotation
	first       *tls.Certificate    // the certificate before the first renewal
	connections *connrotation.Dialer
	fail        func(error)
}

// newIdentity creates the API client with the certificate of the file store, as the real kubelet does without a
// bootstrap kubeconfig.
func (k *kubelet) newIdentity(ctx context.Context, fail func(error)) (*identity, error) {
	config, err := kubeconfig.Load(k.Process.Machine, k.Process.Environ, k.config.kubeconfig, k.Dial)
	if err != nil {
		return nil, fmt.Errorf("failed to run Kubelet: invalid kubeconfig: %w", err)
	}
	config.UserAgent = "kubelet/" + k.Version + " (windows/amd64) lab stand-in"
	config.QPS, config.Burst = 50, 100
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"

	id := &identity{k: k, fail: fail}
	if k.config.rotateClient {
		if id.manager, err = k.clientManager(ctx); err != nil {
			return nil, err
		}
	}
	if config, err = id.rotatingConfig(config); err != nil {
		return nil, fmt.Errorf("failed to run Kubelet: %w", err)
	}
	if k.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("failed to run Kubelet: failed to initialize kubelet client: %w", err)
	}
	if id.manager != nil {
		id.first = id.manager.Current()
		id.manager.Start()
	}
	return id, nil
}

func (k *kubelet) clientManager(ctx context.Context) (certificate.Manager, error) {
	store, err := k.certificateStore("kubelet-client")
	if err != nil {
		return nil, err
	}
	return k.certificateManager(ctx, certificate.Config{
		Template:         &x509.CertificateRequest{Subject: k.certificateSubject()},
		SignerName:       certificatesv1.KubeAPIServerClientKubeletSignerName,
		GetUsages:        certificate.DefaultKubeletClientGetUsages,
		CertificateStore: store,
	})
}

func (k *kubelet) certificateSubject() pkix.Name {
	return pkix.Name{CommonName: "system:node:" + k.config.nodeName, Organization: []string{"system:nodes"}}
}

// certificateStore returns client-go's file store in the real directory behind the kubelet's directory.
func (k *kubelet) certificateStore(name string) (certificate.FileStore, error) {
	directory, ok := k.Process.Machine.RealPath(k.config.certDir)
	if !ok {
		return nil, fmt.Errorf("failed to initialize certificate store: %s of the simulated host %s is not backed by a real folder: mount one before its boot",
			k.config.certDir, k.Process.Machine.Name())
	}
	store, err := certificate.NewFileStoreWithLogger(k.newLogger(), name, directory, directory, "", "")
	if err != nil {
		return nil, fmt.Errorf("failed to initialize certificate store: %w", err)
	}
	return store, nil
}

// newLogger makes client-go write into the kubelet's log.
func (k *kubelet) newLogger() klog.Logger {
	return funcr.New(func(prefix, args string) { k.infof("%s %s", prefix, args) }, funcr.Options{})
}

func (k *kubelet) certificateManager(ctx context.Context, config certificate.Config) (certificate.Manager, error) {
	ctx = klog.NewContext(ctx, k.newLogger())
	config.Ctx = &ctx
	config.ClientsetFn = func(*tls.Certificate) (kubernetes.Interface, error) { return k.client, nil }
	manager, err := certificate.NewManager(&config)
	if err != nil {
		return nil, fmt.Errorf("failed to initialize certificate manager for %s: %w", config.SignerName, err)
	}
	return manager, nil
}

// rotatingConfig returns a configuration that uses the current certificate for each new connection.
func (id *identity) rotatingConfig(config *rest.Config) (*rest.Config, error) {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	id.connections = connrotation.NewDialer(dial)
	if id.manager == nil {
		config.Dial = id.connections.DialContext
		return config, nil
	}
	tlsConfig, err := rest.TLSConfigFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, err
	}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if current := id.manager.Current(); current != nil {
			return current, nil
		}
		return &tls.Certificate{}, nil
	}
	rotating := rest.AnonymousClientConfig(config)
	rotating.TLSClientConfig = rest.TLSClientConfig{}
	rotating.Dial = nil
	rotating.Transport = utilnet.SetTransportDefaults(&http.Transport{
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     tlsConfig,
		DialContext:         id.connections.DialContext,
		Proxy:               config.Proxy,
	})
	return rotating, nil
}

// watchRotation closes the connections after a certificate rotation, and ends the kubelet if no certificate is valid.
func (id *identity) watchRotation(ctx context.Context) {
	if id.manager == nil {
		return
	}
	ticker := id.k.Clock.NewTicker(rotationCheckInterval)
	defer ticker.Stop()
	last, lastSeen := id.first, id.k.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		current, now := id.manager.Current(), id.k.Clock.Now()
		switch {
		case current == nil && now.Sub(lastSeen) > missingCertTimeout:
			id.fail(errors.New("no valid client certificate is found and the server is responsive, exiting"))
		case current != nil && now.After(current.Leaf.NotAfter):
			id.fail(errors.New("the currently active client certificate has expired and the server is responsive, exiting"))
		case current != nil && current != last:
			id.k.infof("Certificate rotation detected, shutting down client connections to start using new credentials")
			id.connections.CloseAll()
			last, lastSeen = current, now
		case current != nil:
			lastSeen = now
		}
	}
}

// stop closes every connection, so that a stopped kubelet has no connection to the API server.
func (id *identity) stop() {
	if id.manager != nil {
		id.manager.Stop()
	}
	id.connections.CloseAll()
}
