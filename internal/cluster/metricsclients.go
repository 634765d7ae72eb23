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

// MetricsClients is the ConfigMap with the authorities of client certificates that the API server publishes.
// OpenShift's monitoring copies these authorities to its ConfigMap metrics-client-ca, and requests the client
// certificate of Prometheus from the API server's signer.
// Source: openshift/cluster-monitoring-operator, pkg/tasks/metrics_client_ca.go and pkg/operator/operator.go.
var MetricsClients = types.NamespacedName{Namespace: "kube-system", Name: "extension-apiserver-authentication"}

const clientCAKey = "client-ca-file"

// IsWithoutMetricsClients reports whether the object is the ConfigMap of MetricsClients, and contains no
// authority.
func IsWithoutMetricsClients(object runtime.Object) bool {
	found, ok := object.(*corev1.ConfigMap)
	return ok && client.ObjectKeyFromObject(found) == MetricsClients && strings.TrimSpace(found.Data[clientCAKey]) == ""
}

// unusableClients returns the fault of the authorities in the ConfigMap of MetricsClients, or nil.
func unusableClients(found *corev1.ConfigMap) *Notice {
	_, problem := clientAuthorities(found)
	if problem == "" {
		return nil
	}
	return &Notice{
		Object: "ConfigMap " + MetricsClients.String(), ResourceVersion: found.ResourceVersion, Field: "key " + clientCAKey,
		Message: problem + " The API server writes it: check the ClusterOperator kube-apiserver.",
	}
}

// clientAuthorities returns the authorities in PEM, sorted, so that the order does not matter; empty if the API
// server authenticates no client by certificate. Unreadable certificates are omitted, as the exporters skip
// them too.
func clientAuthorities(found *corev1.ConfigMap) (authoritiesPEM, problem string) {
	read, problem := parseAuthorities([]byte(found.Data[clientCAKey]))
	if problem == "" && len(read.certificates) == 0 && len(read.unread) > 0 {
		problem = fmt.Sprintf("none of its %d certificates can be read.", len(read.unread))
	}
	return strings.Join(read.certificates, ""), problem
}

// readMetricsClients reads the authorities of the metrics clients. Without authorities, exporters accept any
// client. Damaged authorities are replaced by the former ones, with a notice. Without former authorities,
// damaged ones are an error, so that no exporter that requires a certificate stops doing so.
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
