package standin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

//
func TestKubelet_ServesLogs(t *testing.T) {
	h := newClusterHost(t, "win-logs", Options{})
	if err := h.Host().Firewall.SetRule(t.Context(), host.FirewallRule{Name: "kubelet", DisplayName: "kubelet", Protocol: "TCP", LocalPort: 10250, Enabled: true, Allow: true}); err != nil {
		t.Fatal(err)
	}
	const source = "windows-instance-config-daemon"
	events := h.Host().EventLog
	if err := events.AddSource(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	for _, event := range []host.Event{{ID: 1, Message: "it is broken"}, {ID: 2, Message: "it is mended"}} {
		event.Source, event.Level = source, host.EventError
		if err := events.Report(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	namespace := clustertest.Namespace(t, h.cluster)
	h.startReadyNode("10.132.8.0/23")
	h.createPod(namespace, "web", nil)
	h.awaitPod("the pod runs", namespace, "web", isRunning)

	get := func(config *tls.Config, path string) (int, string, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		defer client.CloseIdleConnections()
		response, err := client.Get("https://" + h.portAddress(10250) + path)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
	admin, err := rest.TLSConfigFor(h.cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	admin.ServerName = "10.9.0.5"
	admin.RootCAs = h.servingCA()
	logs := "/containerLogs/" + namespace + "/web/web"

	t.Run("not before its serving certificate is signed", func(t *testing.T) {
		if _, _, err := get(admin, logs); err == nil {
			t.Error("it answered")
		}
	})
	h.approveServing()
	h.pollCondition("it answers", func(context.Context) (bool, error) {
		status, _, err := get(admin, "/healthz")
		return err == nil && status == http.StatusOK, nil
	})
	for name, test := range map[string]struct {
		path   string
		status int
		want   string
	}{
		"the log of a running container":       {logs, http.StatusOK, "runs in name on win-logs"},
		"its last line":                        {logs + "?tailLines=1", http.StatusOK, "with address 10.132."},
		"a pod that is not there":              {"/containerLogs/" + namespace + "/other/web", http.StatusNotFound, "does not exist"},
		"a container that is not there":        {"/containerLogs/" + namespace + "/web/other", http.StatusNotFound, "not found in pod"},
		"the pods of the node, as a list":      {"/pods", http.StatusOK, `"kind":"PodList"`},
		"the folders of its logs":              {"/logs/", http.StatusOK, `<a href="kubelet/">kubelet/</a>`},
		"the files in one":                     {"/logs/kubelet", http.StatusOK, `<a href="kubelet.log">kubelet.log</a>`},
		"a log":                                {"/logs/kubelet/kubelet.log", http.StatusOK, "Kubelet version"},
		"a log that is not there":              {"/logs/kubelet/other.log", http.StatusNotFound, ""},
		"the events of a source":               {"/logs/?query=windows-instance-config-daemon&tailLines=1", http.StatusOK, "2 Error            it is mended\n"},
		"no more events than asked for":        {"/logs/?query=windows-instance-config-daemon&tailLines=2", http.StatusOK, "1 Error            it is broken\n"},
		"a service without events, by its log": {"/logs/?query=kubelet", http.StatusOK, "Kubelet version"},
		"a service without events, with options": {"/logs/?query=kubelet&tailLines=1", http.StatusOK,
			"options present and query resolved to log files for [kubelet]"},
		"how long its certificates are good":    {"/metrics", http.StatusOK, "\nkubelet_certificate_manager_server_ttl_seconds 2.59"}, // a month
		"a path that the kubelet does not have": {"/nothing", http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := get(admin, test.path)
			if err != nil || status != test.status || !strings.Contains(body, test.want) {
				t.Errorf("status %d, error %v, body %s", status, err, body)
			}
		})
	}
	t.Run("a client without certificate is not let in", func(t *testing.T) {
		status, _, err := get(&tls.Config{RootCAs: admin.RootCAs, ServerName: admin.ServerName}, logs)
		if err != nil || status != http.StatusUnauthorized {
			t.Errorf("status %d, error %v", status, err)
		}
	})
	t.Run("a closed port is reported as such", func(t *testing.T) {
		h.stop("kubelet")
		if _, _, err := get(admin, logs); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("error %v", err)
		}
	})
}

func (h *clusterHost) servingCA() *x509.CertPool {
	h.t.Helper()
	ca, err := h.admin.CoreV1().ConfigMaps("openshift-config-managed").Get(h.t.Context(), "kubelet-serving-ca",
		metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca.Data["ca-bundle.crt"]))
	return pool
}
