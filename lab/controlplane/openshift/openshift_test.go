package openshift

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func testCluster(platform string) Cluster {
	return Cluster{
		Domain: "lab.example.com", Platform: platform,
		APIServerURL: "https://api.lab.example.com:6443", APIServerInternalURI: "https://api-int.lab.example.com:6443",
		APIServerInternalPort: "6443",
		ServerCA:              "server\n", KubeletClientCA: "client\n", KubeletServingCA: "serving\n",
	}
}

func TestObjects(t *testing.T) {
	for _, platform := range Platforms {
		t.Run("a cluster on "+platform+" has an infrastructure and a pool whose configuration exists", func(t *testing.T) {
			objects, err := Objects(testCluster(platform))
			if err != nil {
				t.Fatal(err)
			}
			byName := map[string]*unstructured.Unstructured{}
			for _, o := range objects {
				byName[o.GetKind()+"/"+o.GetName()] = o
			}
			if got, _, _ := unstructured.NestedString(byName["Infrastructure/cluster"].Object, "status", "platformStatus", "type"); got != platform {
				t.Errorf("platform is %q", got)
			}
			rendered, _, _ := unstructured.NestedString(byName["MachineConfigPool/worker"].Object, "status", "configuration", "name")
			if byName["MachineConfig/"+rendered] == nil {
				t.Errorf("there is no MachineConfig %q", rendered)
			}
		})
	}

	for _, platform := range Platforms {
		t.Run("a cluster on "+platform+" has the MachineSet of its Linux workers, with user data and credentials, if Machines are made there", func(t *testing.T) {
			objects, err := Objects(testCluster(platform))
			if err != nil {
				t.Fatal(err)
			}
			byName := map[string]*unstructured.Unstructured{}
			var set *unstructured.Unstructured
			for _, o := range objects {
				byName[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] = o
				if o.GetKind() == "MachineSet" {
					set = o
				}
			}
			if platform == "None" {
				if set != nil {
					t.Errorf("there is MachineSet %s", set.GetName())
				}
				return
			}
			if set == nil {
				t.Fatal("there is none")
			}
			for _, field := range []string{"userDataSecret", "credentialsSecret"} {
				name, _, _ := unstructured.NestedString(set.Object, "spec", "template", "spec", "providerSpec", "value", field, "name")
				if byName["Secret/openshift-machine-api/"+name] == nil {
					t.Errorf("%s is %q, which is not there", field, name)
				}
			}
		})
	}

	t.Run("a domain without a base is refused", func(t *testing.T) {
		c := testCluster("None")
		c.Domain = "lab"
		if _, err := Objects(c); err == nil || !strings.Contains(err.Error(), "base domain") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("an unknown platform is refused with a list of the known", func(t *testing.T) {
		if _, err := Objects(testCluster("Mainframe")); err == nil || !strings.Contains(err.Error(), "VSphere") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCRDs(t *testing.T) {
	crds, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 27 {
		t.Errorf("there are %d definitions, want the 27 of gencrds", len(crds))
	}
	for _, crd := range crds {
		if crd.GetKind() != "CustomResourceDefinition" {
			t.Errorf("%s is a %s", crd.GetName(), crd.GetKind())
		}
	}
}
