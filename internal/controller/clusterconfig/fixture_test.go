package clusterconfig

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// orderlyCluster returns the objects that every OpenShift cluster has.
func orderlyCluster(t *testing.T) []client.Object {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "cluster"}
	ca := string(servingCertificate(t).Data[corev1.TLSCertKey])
	rendered := machineconfigv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: "rendered-worker-1"}}
	overlay := &operatorv1.HybridOverlayConfig{HybridClusterNetwork: []operatorv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14", HostPrefix: 23}}}
	return []client.Object{
		&configv1.Infrastructure{ObjectMeta: meta, Status: configv1.InfrastructureStatus{
			InfrastructureName: "lab-x7k2p", APIServerInternalURL: "https://api-int.lab.example.com:6443",
			PlatformStatus: &configv1.PlatformStatus{Type: configv1.NonePlatformType},
		}},
		&configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: "5.0.2"},
			History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "5.0.2"}},
		}},
		&configv1.Network{ObjectMeta: meta, Status: configv1.NetworkStatus{NetworkType: "OVNKubernetes",
			ServiceNetwork: []string{"172.30.0.0/16"}}},
		&operatorv1.Network{ObjectMeta: meta,
			Spec: operatorv1.NetworkSpec{DefaultNetwork: operatorv1.DefaultNetworkDefinition{
				Type: "OVNKubernetes", OVNKubernetesConfig: &operatorv1.OVNKubernetesConfig{HybridOverlayConfig: overlay},
			}}},
		&machineconfigv1.MachineConfigPool{
			ObjectMeta: metav1.ObjectMeta{Name: "worker"},
			Spec:       machineconfigv1.MachineConfigPoolSpec{Configuration: rendered},
			Status:     machineconfigv1.MachineConfigPoolStatus{Configuration: rendered},
		},
		&machineconfigv1.MachineConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "rendered-worker-1"},
			Spec:       machineconfigv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: workerIgnition(t)}},
		},
		&machineconfigv1.ControllerConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "machine-config-controller"},
			Spec:       machineconfigv1.ControllerConfigSpec{KubeAPIServerServingCAData: []byte(ca)},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt"},
			Data: map[string]string{"ca.crt": ca}},
	}
}

func workerIgnition(t *testing.T) []byte {
	t.Helper()
	type object = map[string]any
	kubelet := "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nclusterDNS: [172.30.0.10]\nclusterDomain: cluster.local\n"
	raw, err := json.Marshal(object{
		"ignition": object{"version": "3.5.0"},
		"storage": object{"files": []object{{"path": "/etc/kubernetes/kubelet.conf", "contents": object{
			"source": "data:;base64," + base64.StdEncoding.EncodeToString([]byte(kubelet)),
		}}}},
		"systemd": object{"units": []object{{"name": "kubelet.service",
			"contents": "[Service]\nExecStart=/usr/bin/kubelet \\\n  --v=2\n"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
