package robustness

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// ungatedCordons checks nodes that worked. A node that does not work, or was never verified, is drained for a removal
// without a disruption slot.
func (e Evidence) ungatedCordons() (violations []string) {
	e.replayChanges(func(before *state, c testenv.Change) {
		node, ok := c.Object.(*corev1.Node)
		if !ok || !isCordonedByOperator(node) {
			return
		}
		if was := before.nodes[c.Name]; was == nil || !isInService(was) {
			return
		}
		if !before.hasEntry(node.Name) {
			violations = append(violations, fmt.Sprintf("%s: Node %s", formatPosition(c), node.Name))
		}
	})
	return violations
}

// restartTolerance is the maximum difference between a host's restart and the history of the API, by a clock that is
// ten times as fast as the real one.
const restartTolerance = 2 * time.Minute

// restartedUngated checks restarts of hosts with nodes that were continuously in service around that time.
func (e Evidence) restartedUngated() (violations []string) {
	for _, restart := range e.Restarts {
		served, gated, seen := true, false, false
		e.visitStates(restart.At.Add(-restartTolerance), restart.At.Add(restartTolerance), func(s *state) {
			node := s.nodes["/"+restart.Node]
			served, gated, seen = served && node != nil && isInService(node), gated || s.hasEntry(restart.Node), true
		})
		if seen && served && !gated {
			violations = append(violations, fmt.Sprintf("%s: Node %s", restart.At.UTC().Format("15:04:05.000"), restart.Node))
		}
	}
	return violations
}

// isInService reports whether a node works, and the operator keeps no pods off the node. A cordon by a user does not
// change the operator's permissions for the node.
func isInService(node *corev1.Node) bool {
	return isNodeReady(node) && !isCordonedByOperator(node) &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintNotReady })
}

func isNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (e Evidence) namedTwice() (violations []string) {
	e.replayChanges(func(before *state, c testenv.Change) {
		instance, ok := c.Object.(*v1alpha1.WindowsInstance)
		if !ok || instance.Status.NodeRef == nil || !instance.Status.NodeRef.Confirmed {
			return
		}
		for name, other := range before.instances {
			if ref := other.Status.NodeRef; name != c.Name && ref != nil && ref.Confirmed && ref.Name == instance.Status.NodeRef.Name {
				violations = append(violations, fmt.Sprintf("%s: %s, of %s and %s", formatPosition(c), ref.Name, c.Name, name))
			}
		}
	})
	return violations
}

func (e Evidence) foreignHostKeys() (violations []string) {
	for _, c := range e.Changes {
		instance, ok := c.Object.(*v1alpha1.WindowsInstance)
		if !ok || instance.Status.HostKey == nil {
			continue
		}
		known := false
		for _, host := range e.Hosts {
			if slices.Contains(host.Names, instance.Spec.Address) || slices.Contains(host.Addresses, instance.Spec.Address) {
				known = known || len(host.HostKeys) == 0 || slices.Contains(host.HostKeys, instance.Status.HostKey.Fingerprint)
			}
		}
		if !known {
			violations = append(violations, fmt.Sprintf("%s: %s has %s", formatPosition(c), instance.Name, instance.Status.HostKey.Fingerprint))
		}
	}
	return violations
}

// unacceptedHostKeys checks each instance with a pinned key that changes to a different key.
func (e Evidence) unacceptedHostKeys() (violations []string) {
	pinned := map[types.UID]string{}
	e.replayChanges(func(before *state, c testenv.Change) {
		instance, ok := c.Object.(*v1alpha1.WindowsInstance)
		if !ok || instance.Status.HostKey == nil {
			return
		}
		former, key := pinned[instance.UID], instance.Status.HostKey.Fingerprint
		if pinned[instance.UID] = key; former == "" || former == key {
			return
		}
		if was := before.instances[c.Name]; was == nil || was.Annotations[v1alpha1.AnnotationAcceptHostKey] != key {
			violations = append(violations, fmt.Sprintf("%s: %s had %s, and has %s", formatPosition(c), c.Name, former, key))
		}
	})
	return violations
}

// foreignCertificates checks each approved request.
func (e Evidence) foreignCertificates() (violations []string) {
	for _, c := range e.Changes {
		request, ok := c.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok || !slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		}) {
			continue
		}
		if what := e.foreignRequest(request); what != "" {
			violations = append(violations, fmt.Sprintf("%s: %s of %s: %s", formatPosition(c), request.Name, request.Spec.Username, what))
		}
	}
	return violations
}

func (e Evidence) foreignRequest(request *certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return "it is not PEM"
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err.Error()
	}
	if strings.HasPrefix(csr.Subject.CommonName, "system:ovn-node:") {
		return "" // the cluster's own approver checks these
	}
	node, ok := strings.CutPrefix(csr.Subject.CommonName, "system:node:")
	host, known := e.Hosts[node]
	switch {
	case !ok || !known:
		return "it is for " + csr.Subject.CommonName
	case strings.HasPrefix(request.Spec.Username, "system:node:") && request.Spec.Username != csr.Subject.CommonName:
		return "it is for another node, " + node
	}
	for _, name := range csr.DNSNames {
		if name != node && !slices.Contains(host.Names, name) {
			return "it has the name " + name
		}
	}
	for _, ip := range csr.IPAddresses {
		if !slices.Contains(host.Addresses, ip.String()) {
			return "it has the address " + ip.String()
		}
	}
	if len(csr.URIs)+len(csr.EmailAddresses) > 0 {
		return fmt.Sprintf("it has names that no kubelet has: %v %v", csr.URIs, csr.EmailAddresses)
	}
	return ""
}

// missingMessages checks each status of the current spec.
func (e Evidence) missingMessages() (violations []string) {
	for _, c := range e.Changes {
		instance, ok := c.Object.(*v1alpha1.WindowsInstance)
		if !ok || len(instance.Status.Conditions) == 0 || isReady(instance) {
			continue
		}
		if reason := missingMessage(instance); reason != "" {
			violations = append(violations, formatPosition(c)+": "+instance.Name+" "+reason)
		}
	}
	return violations
}

func missingMessage(instance *v1alpha1.WindowsInstance) string {
	switch s := instance.Status; {
	case s.Summary == "" || s.Summary == v1alpha1.ConditionReady:
		return fmt.Sprintf("says %q, and is not Ready", s.Summary)
	case s.NextAction == "":
		return "says " + s.Summary + " and no next action"
	}
	for _, condition := range instance.Status.Conditions {
		if condition.Status == metav1.ConditionFalse && condition.Message == "" {
			return "has no message for " + condition.Type + "=False"
		}
	}
	return ""
}

func (e Evidence) foreignNodes() (violations []string) {
	for _, r := range e.Requests {
		if _, known := e.Hosts[r.Object.Name]; !known && e.hasWritten(r, "nodes") {
			violations = append(violations, r.Verb+" "+r.URI)
		}
	}
	return violations
}

// maxReadyLosses is the maximum number of times that an instance may lose Ready after all faults have ended: once for
// each pending change.
const maxReadyLosses = 3

func (e Evidence) readyLosses() (violations []string) {
	lost := map[types.UID]int{}
	e.replayChanges(func(before *state, c testenv.Change) {
		instance, ok := c.Object.(*v1alpha1.WindowsInstance)
		was := before.instances[c.Name]
		if !ok || was == nil || c.Revision <= e.FaultsEnd || !isReady(was) || isReady(instance) {
			return
		}
		if lost[instance.UID]++; lost[instance.UID] == maxReadyLosses+1 {
			violations = append(violations, fmt.Sprintf("%s: %s, and it says %s", formatPosition(c), c.Name, instance.Status.Summary))
		}
	})
	return violations
}

func isReady(instance *v1alpha1.WindowsInstance) bool {
	return meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionReady)
}

// hasWritten reports whether the operator has changed a resource.
func (e Evidence) hasWritten(r audit.Event, resource string) bool {
	return r.User.Username == e.Operator && r.Object.Resource == resource && r.Response.Code < 300 &&
		!slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}
