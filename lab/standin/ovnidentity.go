package standin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/go-logr/logr/funcr"
	certificatesv1 "k8s.io/api/certificates/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"

	"github.com/windows-machine-config/wmco/lab/standin/kubeconfig"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// ovnIdentity is the client certificate of the OVN-Kubernetes program for a node. The program requests the
// certificate with the kubelet's identity, and stores and renews it. Source: StartNodeCertificateManager in
// go-controller/pkg/util/kube.go of ovn-kubernetes.
type ovnIdentity struct {
	p         *node.Process
	node      string
	bootstrap string // the kubelet's kubeconfig
	directory string
	validity  time.Duration
	dial      kubeconfig.Dialer

	manager certificate.Manager
}

// certificateTimeout is the time that the real program waits for its first certificate before it exits.
const certificateTimeout = 2 * time.Minute

// start waits for a certificate and returns a client configuration that always uses the current certificate.
// stop ends the renewals.
func (id *ovnIdentity) start(ctx context.Context) (config *rest.Config, stop func(), err error) {
	bootstrap, err := kubeconfig.Load(id.p.Machine, id.p.Environ, id.bootstrap, id.dial)
	if err != nil {
		return nil, nil, err
	}
	ctx = klog.NewContext(ctx, funcr.New(func(prefix, args string) {
		fmt.Fprintf(id.p.Stderr, "I %s %s\r\n", prefix, args)
	}, funcr.Options{}))
	id.manager, err = certificate.NewManager(&certificate.Config{
		Ctx: &ctx,
		Template: &x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "system:ovn-node:" + id.node, Organization: []string{"system:ovn-nodes"}},
		},
		RequestedCertificateLifetime: &id.validity,
		SignerName:                   certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
			certificatesv1.UsageClientAuth},
		CertificateStore: &driveStore{id.p.Machine, id.directory, "ovnkube-client"},
		ClientsetFn: func(current *tls.Certificate) (kubernetes.Interface, error) {
			if current == nil {
				return kubernetes.NewForConfig(bootstrap)
			}
			renewing, err := id.clientConfig(bootstrap)
			if err != nil {
				return nil, err
			}
			return kubernetes.NewForConfig(renewing)
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to initialize the certificate manager: %w", err)
	}
	id.manager.Start()
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, certificateTimeout, true,
		func(context.Context) (bool, error) {
			return id.manager.Current() != nil, nil
		})
	if err != nil {
		id.manager.Stop()
		return nil, nil, fmt.Errorf("certificate was not signed: %w", err)
	}
	config, err = id.clientConfig(bootstrap)
	return config, id.manager.Stop, err
}

// clientConfig returns a client configuration that uses the current certificate for each new connection.
func (id *ovnIdentity) clientConfig(bootstrap *rest.Config) (*rest.Config, error) {
	config := rest.AnonymousClientConfig(bootstrap)
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if current := id.manager.Current(); current != nil {
			return current, nil
		}
		return &tls.Certificate{}, nil
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Transport = utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tlsConfig, DialContext: config.Dial, Proxy: config.Proxy})
	config.Dial, config.Proxy = nil, nil
	return config, nil
}

// driveStore is client-go's file store on the drive of a machine: files with certificate and key, which are
// never deleted, and a link to the current file.
type driveStore struct {
	drive           node.Drive
	directory, name string
}

// Current implements certificate.Store.
func (s *driveStore) Current() (*tls.Certificate, error) {
	content, err := s.drive.ReadFile(s.certificatePath("current"))
	if errors.Is(err, fs.ErrNotExist) {
		missing := certificate.NoCertKeyError("no certificate in " + s.directory)
		return nil, &missing
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(content, content)
	if err != nil {
		return nil, fmt.Errorf("could not load cert/key pair from %s: %w", s.certificatePath("current"), err)
	}
	return &pair, nil
}

// Update implements certificate.Store. As with the real store, the directory must exist.
func (s *driveStore) Update(cert, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	both := append(append([]byte(nil), cert...), '\n')
	both = append(both, key...)
	file := s.certificatePath(time.Now().Format("2006-01-02-15-04-05"))
	if err := s.drive.WriteFile(file, both); err != nil {
		return nil, fmt.Errorf("write certificate: %w", err)
	}
	if err := s.drive.Symlink(file, s.certificatePath("current")); err != nil {
		return nil, fmt.Errorf("make %s the current certificate: %w", file, err)
	}
	return &pair, nil
}

func (s *driveStore) certificatePath(which string) string {
	return s.directory + `\` + s.name + "-" + which + ".pem"
}
