package nodespec

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestReporting(t *testing.T) {
	in := testInputs()
	t.Run("leads to the status of the node's own report, at the internal API server", func(t *testing.T) {
		for _, server := range []string{"https://api-int.lab.example.com:6443", "https://api-int.lab.example.com:6443/"} {
			in := in
			in.Cluster.APIServerInternalURL = server
			want := "https://api-int.lab.example.com:6443/apis/" + v1alpha1.GroupVersion.String() +
				"/namespaces/openshift-windows-machine-config-operator/windowsnodereports/win-a/status"
			if got := mustMake(t, in).Reporting.URL; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	t.Run("trusts the authorities of the API server, and no others", func(t *testing.T) {
		spec := mustMake(t, in)
		if content := fileAt(t, spec, spec.Reporting.CAFile).Content; content != in.Cluster.APIServerCA {
			t.Errorf("%s has %q", spec.Reporting.CAFile, content)
		}
	})
	t.Run("is as an identity of the node", func(t *testing.T) {
		spec := mustMake(t, in)
		if !slices.ContainsFunc(spec.Identities, func(i Identity) bool { return i.Name == spec.Reporting.Identity }) {
			t.Errorf("nobody is %s", spec.Reporting.Identity)
		}
	})
	t.Run("is restarted for by nothing: another namespace is another place to write to", func(t *testing.T) {
		other := in
		other.Namespace = "wmco"
		before, after := mustMake(t, in), mustMake(t, other)
		if before.Digest() == after.Digest() {
			t.Error("the agents would not know")
		}
		for i := range before.Services {
			if before.Services[i].CommandLine != after.Services[i].CommandLine {
				t.Errorf("%s has another command line", before.Services[i].Name)
			}
		}
	})
	for name, namespace := range map[string]string{
		"a namespace that is not known":   "",
		"a path for a namespace":          "a/../b",
		"a query for a namespace":         "a?b",
		"a namespace in another alphabet": "wmсo",
		"a namespace with a dot":          "a.b",
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			in := in
			in.Namespace = namespace
			if _, err := Make(in); err == nil || !strings.Contains(err.Error(), "namespace") {
				t.Errorf("error is %v", err)
			}
		})
	}
	t.Run("is a URL without anything else in it", func(t *testing.T) {
		parsed, err := url.Parse(mustMake(t, in).Reporting.URL)
		if err != nil || parsed.RawQuery != "" || parsed.User != nil || parsed.Fragment != "" {
			t.Errorf("%+v (%v)", parsed, err)
		}
	})
}
