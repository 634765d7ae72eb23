package containerd

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tokenRegistry answers as registries do that take no password but for a token: Quay and Harbor among them. A token
// names the host and who asked for it.
func (n *network) tokenRegistry(w http.ResponseWriter, r *http.Request) bool {
	if !n.tokens {
		return false
	}
	if r.URL.Path == "/token" {
		if r.Method != http.MethodGet { // as Quay
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		user, _, _ := r.BasicAuth()
		fmt.Fprintf(w, `{"token":"%s@%s"}`, user, r.Host)
		return true
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="https://%s/token",service="registry"`, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	return false
}

// kubeletCredentials are what the kubelet hands to containerd with the request for an image of the host: it names no
// host with them.
func (n *network) kubeletCredentials(t *testing.T, image string) func(string) (string, string, error) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(n.root, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Auths map[string]struct{ Auth string }
	}
	if err := json.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	for registry, entry := range config.Auths {
		if strings.HasPrefix(image, registry+"/") {
			decoded, err := base64.StdEncoding.DecodeString(entry.Auth)
			if err != nil {
				t.Fatal(err)
			}
			user, password, _ := strings.Cut(string(decoded), ":")
			return func(string) (string, string, error) { return user, password, nil }
		}
	}
	return nil
}

// containerd offers what the kubelet gives it to whoever asks, also to mirrors; containers/image, on Linux nodes, does
// not.
func TestCredentials_NotSentToMirrors(t *testing.T) {
	for _, image := range []string{"quay.io/app", "quay.io/org/app"} {
		t.Run("of "+image, func(t *testing.T) {
			n := newNetwork(t)
			n.tokens, n.credentials = true, n.kubeletCredentials(t, image)
			if _, err := n.resolve(t, image+"@"+digest); err == nil {
				t.Error("it was found")
			}
			for host, want := range map[string]string{
				"quay.io": "Bearer quay@quay.io", "second.example.com:5000": "Bearer mirror@second.example.com:5000",
				"first.example.com": "Bearer @first.example.com",
			} {
				if got := n.headers[host]; got != want {
					t.Errorf("%s was asked with %q, not with %q", host, got, want)
				}
			}
			for _, sent := range n.sent {
				if !strings.HasPrefix(sent, "quay.io ") && strings.Contains(sent, "quay") {
					t.Errorf("another host got %q", sent)
				}
			}
		})
	}
}
