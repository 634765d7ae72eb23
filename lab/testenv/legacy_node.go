package testenv

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// installLegacyCertificate writes a received and renewed certificate into the kubelet's store: key and certificate in
// one file, and a link to the file.
func (r *Environment) installLegacyCertificate(ctx context.Context, m *fake.Machine, node string) error {
	data, err := r.requestLegacyCertificate(ctx, node)
	if err != nil {
		return fmt.Errorf("get a certificate for the kubelet: %w", err)
	}
	const file, link = kubeletPKI + `\kubelet-client-2026-10-01-00-00-00.pem`, kubeletPKI + `\kubelet-client-current.pem`
	if err := m.Drive().MkdirAll(kubeletPKI); err != nil {
		return err
	}
	if err := m.Drive().WriteFile(file, data); err != nil {
		return err
	}
	return m.Host().Tree.Symlink(ctx, file, link)
}

// requestLegacyCertificate requests a signature of the cluster's signer for a new key of a node's kubelet.
func (r *Environment) requestLegacyCertificate(ctx context.Context, node string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), r.options.Rand)
	if err != nil {
		return nil, err
	}
	subject := pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
	request, err := x509.CreateCertificateRequest(r.options.Rand, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return nil, err
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if err := r.Client.Create(ctx, csr); err != nil {
		return nil, err
	}
	if err := r.approveLegacyRequest(ctx, csr); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextCancel(ctx, legacyPollInterval, true, func(ctx context.Context) (bool, error) {
		return len(csr.Status.Certificate) > 0, r.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr)
	})
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := r.Client.Delete(ctx, csr); err != nil {
		return nil, err
	}
	return append(csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})...), nil
}

// approveLegacyRequest approves a request like a legacy operator. Other clients write to the request at the same time.
func (r *Environment) approveLegacyRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			return err
		}
		if len(csr.Status.Conditions) > 0 {
			return nil
		}
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "WMCOApprove",
		})
		return r.Client.SubResource("approval").Update(ctx, csr)
	})
}

// approveLegacyServing waits for the kubelet's request for a serving certificate, and approves it unless the cluster
// has done so.
func (r *Environment) approveLegacyServing(ctx context.Context, node string) error {
	return wait.PollUntilContextCancel(ctx, legacyPollInterval, true, func(ctx context.Context) (bool, error) {
		var list certificatesv1.CertificateSigningRequestList
		if err := r.Client.List(ctx, &list); err != nil {
			return false, err
		}
		for i := range list.Items {
			csr := &list.Items[i]
			if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName || csr.Spec.Username != "system:node:"+node {
				continue
			}
			return true, client.IgnoreNotFound(r.approveLegacyRequest(ctx, csr))
		}
		return false, nil
	})
}

// createLegacyNode creates the Node of a kubelet with Docker. No program of the lab is such a kubelet.
func (r *Environment) createLegacyNode(ctx context.Context, m *fake.Machine, name string) error {
	info, err := m.Host().System.Info(ctx)
	if err != nil {
		return err
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "windows", corev1.LabelArchStable: "amd64",
			corev1.LabelWindowsBuild:  info.Version,
			"node.openshift.io/os_id": osWindows,
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "os", Value: osWindows, Effect: corev1.TaintEffectNoSchedule}}},
	}
	if err := r.Client.Create(ctx, node); err != nil {
		return fmt.Errorf("make Node %s: %w", name, err)
	}
	now, before := metav1.NewTime(r.options.Clock.Now()), node.DeepCopy()
	node.Status = corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: m.Addresses()[0]},
			{Type: corev1.NodeHostName, Address: name}},
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
			corev1.ResourcePods: resource.MustParse("110"),
		},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: "windows", Architecture: "amd64", KubeletVersion: "v1.21.1",
			ContainerRuntimeVersion: "docker://20.10.4",
			OSImage:                 info.Product, KernelVersion: fmt.Sprintf("%s.%d", info.Version, info.Revision),
			MachineID: info.HostName, SystemUUID: info.MachineID,
		},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			Message:           "kubelet is posting ready status",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	}
	node.Status.Allocatable = node.Status.Capacity
	if err := r.Client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status of Node %s: %w", name, err)
	}
	return r.renewLegacyLease(ctx, name)
}

// legacyLeaseInterval is the interval of lease renewals by a kubelet.
const legacyLeaseInterval = 10 * time.Second

// keepLegacyNode renews the lease of a Node as long as the process that simulates its kubelet runs.
func (r *Environment) keepLegacyNode(m *fake.Machine, name string) {
	kubelet, _ := m.Service("kubelet")
	r.group.Go(func() {
		ctx, cancel := context.WithCancel(r.running)
		defer cancel()
		r.group.Go(func() {
			defer cancel()
			_ = m.WaitFor(ctx, func(m *fake.Machine) bool { // ends with the environment at the latest
				now, exists := m.Service("kubelet")
				return !exists || now.PID != kubelet.PID || now.State != host.ServiceRunning
			})
		})
		_ = wait.PollUntilContextCancel(ctx, legacyLeaseInterval, true, func(ctx context.Context) (bool, error) {
			_ = r.renewLegacyLease(ctx, name) // retried before the Node counts as dead
			return false, nil
		})
	})
}

func (r *Environment) renewLegacyLease(ctx context.Context, name string) error {
	lease := &coordinationv1.Lease{}
	now := metav1.NewMicroTime(r.options.Clock.Now())
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: name}, lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the lease of Node %s: %w", name, err)
	}
	exists := err == nil
	lease.Namespace, lease.Name = corev1.NamespaceNodeLease, name
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &now}
	if exists {
		err = r.Client.Update(ctx, lease)
	} else {
		err = r.Client.Create(ctx, lease)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("renew the lease of Node %s", name), err)
	}
	return nil
}
