// Package kubelet tests the kubectl plugin against the kubelet of a compromised node, behind a real API server.
package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/nodelogs"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/linuxns"
)

// address is the node's address. API servers reject loopback addresses, so the tests run in a separate network.
const address = "10.9.0.1"

var shared = clustertest.New(cluster.Options{})

func TestMain(m *testing.M) {
	config := linuxns.Config{Addresses: []netip.Addr{netip.MustParseAddr(address)}}
	os.Exit(linuxns.RunTests(config, func() int { return shared.Main(m) }))
}

// hostile is a kubelet that redirects each request, and the attacker's server.
type hostile struct {
	location string
	mu       sync.Mutex
	received []string
}

// startServers starts both servers, with a serving certificate that the API server trusts.
func (h *hostile) startServers(t *testing.T, c *cluster.Cluster) (port int32, foreignServer string) {
	t.Helper()
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", h.location)
		w.WriteHeader(http.StatusFound)
	}))
	kubelet.Listener = listenTCP(t)
	kubelet.TLS = &tls.Config{Certificates: []tls.Certificate{servingCertificate(t, c)}}
	kubelet.StartTLS()
	t.Cleanup(kubelet.Close)
	owner := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.received = append(h.received, r.Header.Get("Authorization"))
	}))
	owner.Listener = listenTCP(t)
	owner.Start()
	t.Cleanup(owner.Close)
	return int32(kubelet.Listener.Addr().(*net.TCPAddr).Port), owner.URL
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func servingCertificate(t *testing.T, c *cluster.Cluster) tls.Certificate {
	t.Helper()
	signer, err := c.CSRSigner()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := x509.ParseCertificate(signer.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// newAdministratorConfig returns the configuration of a cluster administrator with a login token.
func newAdministratorConfig(t *testing.T, c *cluster.Cluster, admin kubernetes.Interface) *rest.Config {
	t.Helper()
	space := clustertest.Namespace(t, c)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "administrator"}}
	if _, err := admin.CoreV1().ServiceAccounts(space).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: space},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: space, Name: account.Name}}}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), space, metav1.DeleteOptions{})
	})
	config, err := c.ServiceAccountConfig(t.Context(), space, account.Name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestKubelet_HostileRedirectNotFollowed(t *testing.T) {
	c := shared.Cluster(t)
	admin := kubernetes.NewForConfigOrDie(c.Config)
	h := &hostile{}
	port, foreignServer := h.startServers(t, c)
	node, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if _, err := admin.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := newAdministratorConfig(t, c, admin)
	for name, location := range map[string]string{
		"to a server of its own":        foreignServer,
		"to the cluster's Secrets":      "../../../../../secrets",
		"to another path of the server": "/api/v1/secrets",
	} {
		h.location = location
		files, err := nodelogs.Of(config, node.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, listed := files.Services(t.Context())
		part, read := files.Last(t.Context(), "kubelet/kubelet.log", 1<<20)
		_, events := files.Events(t.Context(), "windows-instance-config-daemon", 5)
		for what, err := range map[string]error{"a list of services": listed, "a log": read, "events": events} {
			if err == nil || !strings.Contains(err.Error(), "which is not followed") {
				t.Errorf("%s: the request for %s returns %v", name, what, err)
			}
		}
		if len(part.Body) > 0 || len(h.received) > 0 {
			t.Errorf("%s: the log is %q, and the kubelet's owner has received %q", name, part.Body, h.received)
		}
	}
	t.Run("a client that follows redirects hands the token over", func(t *testing.T) {
		h.location = foreignServer
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(c.Config.Host + "/api/v1/nodes/win-1/proxy/logs/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if len(h.received) != 1 || h.received[0] != "Bearer "+config.BearerToken {
			t.Errorf("it received %q: the test shows nothing", h.received)
		}
	})
}
