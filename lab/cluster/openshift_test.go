package cluster_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func TestOpenShiftProfile(t *testing.T) {
	c := openshift.Cluster(t)
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(t *testing.T, resource, namespace, name string) *unstructured.Unstructured {
		t.Helper()
		gvr, _ := schema.ParseResourceArg(resource)
		if gvr == nil { // plural.version of the core group
			plural, version, _ := strings.Cut(resource, ".")
			gvr = &schema.GroupVersionResource{Version: version, Resource: plural}
		}
		object, err := client.Resource(*gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	field := func(t *testing.T, object *unstructured.Unstructured, want string, path ...string) {
		t.Helper()
		if got, _, err := unstructured.NestedString(object.Object, path...); err != nil || got != want {
			t.Errorf("%s %s is %q (%v), want %q", object.GetKind(), strings.Join(path, "."), got, err, want)
		}
	}

	t.Run("the infrastructure says where nodes reach the API server", func(t *testing.T) {
		infrastructure := get(t, "infrastructures.v1.config.openshift.io", "", "cluster")
		field(t, infrastructure, c.Config.Host, "status", "apiServerInternalURI")
		field(t, infrastructure, "Azure", "status", "platformStatus", "type")
	})

	t.Run("the version fits Kubernetes 1.36", func(t *testing.T) {
		field(t, get(t, "clusterversions.v1.config.openshift.io", "", "version"), "5.0.3", "status", "desired", "version")
	})

	t.Run("the network has a hybrid overlay", func(t *testing.T) {
		field(t, get(t, "networks.v1.config.openshift.io", "", "cluster"), "OVNKubernetes", "status", "networkType")
		network := get(t, "networks.v1.operator.openshift.io", "", "cluster")
		hybrid, _, err := unstructured.NestedSlice(network.Object, "spec", "defaultNetwork", "ovnKubernetesConfig", "hybridOverlayConfig", "hybridClusterNetwork")
		if err != nil || len(hybrid) != 1 || hybrid[0].(map[string]any)["cidr"] != "10.132.0.0/14" {
			t.Errorf("got %v (%v)", hybrid, err)
		}
	})

	t.Run("the worker pool's rendered configuration has a kubelet", func(t *testing.T) {
		pool := get(t, "machineconfigpools.v1.machineconfiguration.openshift.io", "", "worker")
		name, _, _ := unstructured.NestedString(pool.Object, "status", "configuration", "name")
		files, units := readIgnition(t, get(t, "machineconfigs.v1.machineconfiguration.openshift.io", "", name))
		ca := get(t, "configmaps.v1", "openshift-config-managed", "kube-apiserver-client-ca")
		field(t, ca, files["/etc/kubernetes/kubelet-ca.crt"], "data", "ca-bundle.crt")
		if conf := files["/etc/kubernetes/kubelet.conf"]; !strings.Contains(conf, "kind: KubeletConfiguration") {
			t.Errorf("kubelet.conf is %q", conf)
		}
		if unit := units["kubelet.service"]; !strings.Contains(unit, "--cloud-provider=external \\\n      --cloud-config=/etc/kubernetes/cloud.conf") {
			t.Errorf("kubelet.service is %q", unit)
		}
		if files["/etc/kubernetes/cloud.conf"] == "" {
			t.Error("a node on Azure has no cloud.conf")
		}
	})

	t.Run("the controller configuration has the CA of a kubelet's clients", func(t *testing.T) {
		controller := get(t, "controllerconfigs.v1.machineconfiguration.openshift.io", "", "machine-config-controller")
		data, _, _ := unstructured.NestedString(controller.Object, "spec", "kubeAPIServerServingCAData")
		ca, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		field(t, get(t, "configmaps.v1", "openshift-config-managed", "kube-apiserver-client-ca"), string(ca), "data", "ca-bundle.crt")
	})

	for _, resource := range []string{
		"proxies.v1.config.openshift.io", "images.v1.config.openshift.io", "apiservers.v1.config.openshift.io",
	} {
		t.Run("there is a cluster of "+resource, func(t *testing.T) { get(t, resource, "", "cluster") })
	}

	for _, resource := range []string{
		"machines.v1beta1.machine.openshift.io", "machinesets.v1beta1.machine.openshift.io", "machinehealthchecks.v1beta1.machine.openshift.io",
		"imagedigestmirrorsets.v1.config.openshift.io", "imagetagmirrorsets.v1.config.openshift.io",
		"servicemonitors.v1.monitoring.coreos.com", "prometheusrules.v1.monitoring.coreos.com", "operatorconditions.v2.operators.coreos.com",
	} {
		t.Run("there are "+resource, func(t *testing.T) {
			gvr, _ := schema.ParseResourceArg(resource)
			if _, err := client.Resource(*gvr).List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
		})
	}

	t.Run("the controller manager fills in the bootstrap token of nodes", func(t *testing.T) {
		awaitCondition(t, "wait for the token", func(context.Context) (bool, error) {
			secret := get(t, "secrets.v1", "openshift-machine-config-operator", "node-bootstrapper-token")
			_, found, err := unstructured.NestedString(secret.Object, "data", "token")
			return found, err
		})
	})
}

// readIgnition returns the contents of the files and units of a machine configuration.
func readIgnition(t *testing.T, config *unstructured.Unstructured) (files, units map[string]string) {
	t.Helper()
	raw, _, _ := unstructured.NestedMap(config.Object, "spec", "config")
	data, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	var ignition struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source string }
			}
		}
		Systemd struct {
			Units []struct{ Name, Contents string }
		}
	}
	if err := json.Unmarshal(data, &ignition); err != nil {
		t.Fatal(err)
	}
	files, units = map[string]string{}, map[string]string{}
	for _, file := range ignition.Storage.Files {
		files[file.Path] = decodeDataURL(t, file.Contents.Source)
	}
	for _, unit := range ignition.Systemd.Units {
		units[unit.Name] = unit.Contents
	}
	return files, units
}

func decodeDataURL(t *testing.T, source string) string {
	t.Helper()
	header, body, _ := strings.Cut(source, ",")
	if strings.HasSuffix(header, ";base64") {
		data, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	contents, err := url.PathUnescape(body)
	if err != nil {
		t.Fatal(err)
	}
	return contents
}
