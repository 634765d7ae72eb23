package operator_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// forbidden is the API server's response to a ServiceAccount without the right.
const forbidden = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":403,"reason":"Forbidden",` +
	`"message":"windowsdisruptionpolicies is forbidden: the user cannot list them"}`

func TestUnreadableKinds_ForbiddenKindNamedInError(t *testing.T) {
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	o, err := r.RunOperator(func(c *operator.Config) {
		c.ReadTimeout = 5 * time.Second
		c.RESTConfig.Wrap(func(api http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/windowsdisruptionpolicies") {
					return api.RoundTrip(request)
				}
				return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Request: request,
					Header: http.Header{"Content-Type": {"application/json"}},
					Body:   io.NopCloser(bytes.NewReader([]byte(forbidden)))}, nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-o.Done():
	case <-t.Context().Done():
	}
	err = o.Stop()
	if err == nil {
		t.Fatal("the operator ended without an error")
	}
	for _, want := range []string{"*v1alpha1.WindowsDisruptionPolicy", "windowsdisruptionpolicies is forbidden", "deploy/rbac"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "*v1alpha1.WindowsInstance (") {
		t.Errorf("a kind that was read is named, too: %v", err)
	}
}
