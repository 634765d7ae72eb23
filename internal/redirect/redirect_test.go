package redirect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// serveRedirect serves a redirect as a fake API server, and records the credentials that arrive at the target.
func serveRedirect(t *testing.T, status int) (config *rest.Config, received *string) {
	t.Helper()
	received = new(string)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		*received += r.Header.Get("Authorization")
	}))
	t.Cleanup(target.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL+"/elsewhere", status)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, BearerToken: "sha256~of-a-cluster-admin"}, received
}

func TestRefuse_NoClientFollowsRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, call := range map[string]func(*testing.T, *rest.Config) error{
			"a typed clientset": func(t *testing.T, config *rest.Config) error {
				_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				return err
			},
			"a plain client": func(t *testing.T, config *rest.Config) error {
				client, err := rest.HTTPClientFor(config)
				if err != nil {
					return err
				}
				response, err := client.Get(config.Host + "/api/v1/nodes/n/proxy/logs/")
				if err == nil {
					_ = response.Body.Close()
				}
				return err
			},
			"a command in a pod over SPDY": func(t *testing.T, config *rest.Config) error {
				clientset := kubernetes.NewForConfigOrDie(config)
				executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, clientset.CoreV1().RESTClient().Post().Resource("pods").URL())
				if err != nil {
					return err
				}
				return executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &strings.Builder{}})
			},
		} {
			config, received := serveRedirect(t, status)
			Refuse(config)
			err := call(t, config)
			if *received != "" {
				t.Errorf("%d: %s sends %q to the redirect's target", status, name, *received)
			}
			if err == nil || !strings.Contains(err.Error(), "which is not followed") {
				t.Errorf("%d: %s reports %v", status, name, err)
			}
		}
	}
}

func TestRefuse_OtherResponsesReturned(t *testing.T) {
	for _, status := range []int{200, 206, 304, 401, 404, 416, 503} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		config := &rest.Config{Host: server.URL}
		Refuse(config)
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(server.URL)
		if err != nil || response.StatusCode != status {
			t.Errorf("%d: %v, %v", status, response, err)
		}
		if err == nil {
			_ = response.Body.Close()
		}
		server.Close()
	}
}
