package security

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const (
	linuxNodes      = 50
	bootstrapper    = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	operatorAccount = "windows-machine-config-operator"
)

//
func TestLinuxNodes_NotModified(t *testing.T) {
	l := newInstalledLab(t, testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: linuxNodes})
	l.withLinuxNodes(linuxNodes)
	pending := l.linuxRequests()
	l.startOperator()
	l.list()
	l.waitUntilReady()

	// The Windows nodes renew their serving certificates. The operator has already seen the earlier requests then.
	for _, h := range l.Hosts() {
		name := h.Options.Name
		l.createRequest(l.configAs("system:node:"+name, "system:nodes"), "renewal-of-"+name, certificatesv1.KubeletServingSignerName,
			ofNode(name).withServingNames([]string{name}, h.Options.Address))
	}
	for _, h := range l.Hosts() {
		l.waitUntilSigned("renewal-of-" + h.Options.Name)
	}
	l.checkLinuxRequests(pending)

	l.runSubtest("the operator has written nothing of a Linux node, and decided on no request of one", func(l lab) {
		account := audit.ServiceAccount(l.Namespace(), operatorAccount)
		requests, err := audit.Open(l.Cluster().AuditLog).Next()
		l.requireNoError(err)
		written := map[string]int{}
		for _, e := range requests {
			if e.User.Username != account || !slices.Contains([]string{"create", "update", "patch", "delete",
				"deletecollection"}, e.Verb) {
				continue
			}
			written[e.Object.Resource]++
			linux := strings.HasPrefix(e.Object.Name, "master-") || pending[e.Object.Name] != ""
			if (e.Object.Resource == "nodes" || e.Object.Resource == "certificatesigningrequests") && linux {
				l.Errorf("the operator: %s %s %s", e.Verb, e.Resource(), e.Object.Name)
			}
		}
		if written["nodes"] == 0 || written["certificatesigningrequests"] == 0 {
			l.Errorf("the audit log tells of no writes that there must be: %v", written)
		}
	})
}

// withLinuxNodes waits for the Linux nodes and deletes them after the test, because other tests share the control
// plane.
func (l lab) withLinuxNodes(count int) {
	l.Helper()
	l.Cleanup(func() {
		var nodes corev1.NodeList
		if err := l.Client.List(l.cleanupContext(), &nodes,
			client.MatchingLabels{corev1.LabelOSStable: "linux"}); err != nil {
			l.Error(err)
		}
		for i := range nodes.Items {
			if err := l.Client.Delete(l.cleanupContext(), &nodes.Items[i]); client.IgnoreNotFound(err) != nil {
				l.Error(err)
			}
		}
	})
	l.awaitCondition(fmt.Sprintf("%d Linux nodes", count), &corev1.Node{},
		func(ctx context.Context, reader reader) (bool, error) {
			var nodes corev1.NodeList
			err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "linux"})
			return len(nodes.Items) == count, err
		})
}

// linuxRequests creates the requests of Linux nodes that join and renew, and some unusual requests. It returns
// their names and resource versions.
func (l lab) linuxRequests() map[string]string {
	l.Helper()
	created := map[string]string{}
	request := func(user string, groups []string, name, signer string, s subject) {
		created[name] = l.createRequest(l.configAs(user, groups...), name, signer, s)
	}
	nodes, accounts := []string{"system:nodes"}, []string{"system:serviceaccounts",
		"system:serviceaccounts:openshift-machine-config-operator"}
	for i := range linuxNodes {
		linux, address := fmt.Sprintf("master-%d", i), fmt.Sprintf("10.0.0.%d", 10+i)
		request("system:node:"+linux, nodes, "serving-of-"+linux, certificatesv1.KubeletServingSignerName,
			ofNode(linux).withServingNames([]string{linux}, address))
		request(bootstrapper, accounts, "first-of-"+linux, certificatesv1.KubeAPIServerClientKubeletSignerName, ofNode(linux))
	}
	windows := l.Hosts()[0].Options
	request(bootstrapper, accounts, "first-in-the-name-of-a-windows-node", certificatesv1.KubeAPIServerClientKubeletSignerName,
		ofNode(windows.Name))
	request(bootstrapper, accounts, "serving-for-a-windows-node", certificatesv1.KubeletServingSignerName,
		ofNode(windows.Name).withServingNames([]string{windows.Name}, windows.Address))
	request("system:node:master-0", nodes, "of-another-signer", "example.com/signer", ofNode("master-0"))
	request("system:node:not-there", nodes, "serving-of-nobody", certificatesv1.KubeletServingSignerName,
		ofNode("not-there").withServingNames([]string{"not-there"}))
	return created
}

// checkLinuxRequests checks that the requests were neither decided on nor changed.
func (l lab) checkLinuxRequests(created map[string]string) {
	l.Helper()
	present := l.requestsByName()
	for name, version := range created {
		request, ok := present[name]
		if !ok || request.ResourceVersion != version || len(request.Status.Conditions) > 0 {
			l.Errorf("request %s was touched (there: %t): %+v", name, ok, request.Status.Conditions)
		}
	}
}

// waitUntilSigned waits until a request has its certificate.
func (l lab) waitUntilSigned(name string) {
	l.Helper()
	l.awaitCondition("request "+name+" to be signed", &certificatesv1.CertificateSigningRequest{},
		func(ctx context.Context, reader reader) (bool, error) {
			request := &certificatesv1.CertificateSigningRequest{}
			err := reader.Get(ctx, client.ObjectKey{Name: name}, request)
			return err == nil && len(request.Status.Certificate) > 0, client.IgnoreNotFound(err)
		})
}
