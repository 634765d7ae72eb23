package cluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// MetricsClients is the ConfigMap in which the API server publishes the authorities of its clients' certificates.
// OpenShift's monitoring takes those of its ConfigMap metrics-client-ca from there, and requests the client certificate
// of Prometheus from the API server's signer.
// Source: openshift/cluster-monitoring-operator, pkg/tasks/metrics_client_ca.go and pkg/operator/operator.go.
var MetricsClients = types.NamespacedName{Namespace: "kube-system", Name: "extension-apiserver-authentication"}

const clientCAKey = "client-ca-file"

// IsWithoutMetricsClients reports whether the object is the ConfigMap of MetricsClients, and names no authority.
func IsWithoutMetricsClients(object runtime.Object) bool {
	found, ok := object.(*corev1.ConfigMap)
	return ok && client.ObjectKeyFromObject(found) == MetricsClients && strings.TrimSpace(found.Data[clientCAKey]) == ""
}

// unusableClients returns what is wrong with the authorities in the ConfigMap of MetricsClients.
func unusableClients(found *corev1.ConfigMap) *Notice {
	_, problem := clientAuthorities(found)
	if problem == "" {
		return nil
	}
	return &Notice{
		Object: "ConfigMap " + MetricsClients.String(), ResourceVersion: found.ResourceVersion, Field: "key " + clientCAKey,
		Message: problem + " The API server writes it: look at the ClusterOperator kube-apiserver.",
	}
}

// clientAuthorities returns the authorities in PEM, sorted, so that another order is no change; empty where the API
// server knows no client by a certificate. The exporters pass over a certificate that cannot be read, so it is left out
// here, too.
func clientAuthorities(found *corev1.ConfigMap) (authoritiesPEM, problem string) {
	read, problem := authorities([]byte(found.Data[clientCAKey]))
	if problem == "" && len(read.certificates) == 0 && len(read.unread) > 0 {
		problem = fmt.Sprintf("none of its %d certificates can be read.", len(read.unread))
	}
	return strings.Join(read.certificates, ""), problem
}

// readMetricsClients reads the authorities of the metrics' clients. Where there are none, exporters answer any client.
// In the place of damaged ones the former ones stay, with a notice; without former ones they are an error, so that no
// exporter that demands a certificate stops doing so.
func (n *notices) readMetricsClients(ctx context.Context, reader client.Reader, former nodespec.ServingCertificate, facts *nodespec.Cluster) error {
	found := &corev1.ConfigMap{}
	about, there, err := readOptional(ctx, reader, MetricsClients.String(), found, "ConfigMap "+MetricsClients.String())
	if err != nil || !there {
		return err
	}
	if fault := unusableClients(found); fault != nil {
		if former.Certificate == "" {
			return about.error(fault.Field, fault.Message)
		}
		fault.Message += keepsCertificates
		*n = append(*n, *fault)
		facts.MetricsServing.ClientCA = former.ClientCA
		return nil
	}
	facts.MetricsServing.ClientCA, _ = clientAuthorities(found)
	return nil
}
