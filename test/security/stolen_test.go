package security

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/nodecondition"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// attacker is an attacker with the stolen key and certificate of a service of a node.
type attacker struct {
	lab
	client    client.Client
	clientset kubernetes.Interface
	config    *rest.Config
}

// stealIdentity reads the identity of a service from the disk of a host.
func (l lab) stealIdentity(host, service string) attacker {
	l.Helper()
	lines := nodespec.IdentityTable()
	i := slices.IndexFunc(lines, func(line nodespec.ServiceIdentity) bool { return line.Service == service })
	if i < 0 {
		l.Fatalf("%s has no identity", service)
	}
	identity := nodespec.Identity{Name: service, Directory: lines[i].Directory}
	if service == nodespec.ServiceKubelet {
		identity.Name = ""
	}
	pair, err := l.Host(host).Machine().Drive().ReadFile(identity.Path(nodespec.CurrentCertificate))
	l.requireNoError(err)
	t := attacker{lab: l, config: rest.AnonymousClientConfig(l.Config)}
	t.config.CertData, t.config.KeyData, t.config.QPS = pair, pair, -1
	t.client, err = client.New(t.config, client.Options{Scheme: l.Client.Scheme()})
	l.requireNoError(err)
	t.clientset, err = kubernetes.NewForConfig(t.config)
	l.requireNoError(err)
	return t
}

// checkUser checks the user that the API server recognizes.
func (t attacker) checkUser(user string) {
	t.Helper()
	review, err := t.clientset.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	t.requireNoError(err)
	if review.Status.UserInfo.Username != user {
		t.Fatalf("the certificate belongs to %s, want %s", review.Status.UserInfo.Username, user)
	}
}

// runAttacks performs typical attacks, and returns their errors.
func (t attacker) runAttacks() map[string]error {
	ctx, namespace := t.Context(), t.Namespace()
	secret := func(namespace, name string) error {
		return t.client.Get(ctx, objectKey(namespace, name), &corev1.Secret{})
	}
	own, other := t.getInstance("instance-1"), t.getInstance("instance-2")
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"summary":"Ready"}}`))
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}`))
	object := metav1.ObjectMeta{Namespace: namespace, Name: "of-a-thief"}
	_, tokenErr := t.clientset.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, operatorAccount,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	return map[string]error{
		"read the operator's SSH key":       secret(namespace, "cloud-private-key"),
		"list the Secrets of its namespace": t.client.List(ctx, &corev1.SecretList{}, client.InNamespace(namespace)),
		"list the Secrets of the cluster":   t.client.List(ctx, &corev1.SecretList{}),
		"read the pull secret":              secret("openshift-config", "pull-secret"),
		"read the user data of Machines":    secret(v1alpha1.MachineNamespace, "windows-user-data"),
		"get a token of the operator":       tokenErr,
		"list instances": t.client.List(ctx, &v1alpha1.WindowsInstanceList{},
			client.InNamespace(namespace)),
		"read its own instance": t.client.Get(ctx, client.ObjectKeyFromObject(own),
			&v1alpha1.WindowsInstance{}),
		"write its own instance": t.client.Patch(ctx, own, client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"paused":true}}`))),
		"write its own instance's status": t.client.Status().Patch(ctx, own, status),
		"write another instance's status": t.client.Status().Patch(ctx, other, status),
		"delete another instance":         t.client.Delete(ctx, other),
		"list a host": t.client.Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}),
		"read the list of hosts": t.client.Get(ctx, objectKey(namespace, "windows-instances"),
			&corev1.ConfigMap{}),
		"write the disruption policy": t.client.Create(ctx,
			&v1alpha1.WindowsDisruptionPolicy{ObjectMeta: object}),
		"make itself a master":                       t.client.Patch(ctx, t.getNode("instance-1"), label),
		"make another node a master":                 t.client.Patch(ctx, t.getNode("instance-2"), label),
		"delete another node":                        t.client.Delete(ctx, t.getNode("instance-2")),
		"write the condition of another node's host": t.client.Status().Patch(ctx, t.getNode("instance-2"), newConditionPatch("True")),
		"read the admission policies":                t.get("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"),
		"read who may do what":                       t.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
	}
}

func (t attacker) get(path string) error {
	return t.clientset.CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
}

// checkForbidden checks that each of the attempts was forbidden.
func (t attacker) checkForbidden(attempts map[string]error) {
	t.Helper()
	for what, err := range attempts {
		if !apierrors.IsForbidden(err) {
			t.Errorf("an attempt to %s: %v, want forbidden", what, err)
		}
	}
}

func objectKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// newConditionPatch returns the patch that an agent applies to the status of its Node.
func newConditionPatch(status corev1.ConditionStatus) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Stolen","message":"all is lost"}]}}`,
		nodespec.ConditionConfiguration, status))
}

//
func TestStolenCertificates_GiveNoFurtherAccess(t *testing.T) {
	log := &logbook{}
	l := newInstalledLab(t, testenv.Options{Hosts: testenv.Hosts(2)})
	l.startOperator(log.logEverything)
	l.list()
	l.waitUntilReady()
	for _, name := range []string{"instance-1", "instance-2"} {
		l.awaitCondition("the agent of "+name+" to write its condition", &corev1.Node{},
			func(ctx context.Context, reader reader) (bool, error) {
				found := &corev1.Node{}
				err := reader.Get(ctx, objectKey("", name), found)
				is := nodecondition.Of(found)
				return is != nil && is.Status == corev1.ConditionTrue, err
			})
	}
	l.runSubtest("the kubelet's", lab.stolenKubelet)
	l.runSubtest("and none of their keys, nor the operator's, is where others may read it", func(l lab) {
		kept := l.collectKeys("instance-1", "instance-2")
		kept.expectNone(l, "the operator's log", log.readAll())
		l.expectNoneInCluster(kept)
	})
}

func (l lab) stolenKubelet() {
	t := l.stealIdentity("instance-1", nodespec.ServiceKubelet)
	t.checkUser("system:node:instance-1")
	t.checkForbidden(t.runAttacks())
	l.runSubtest("can lie in the condition of its own host, and nothing rests on that", func(l lab) {
		before := l.getInstance("instance-1")
		l.requireNoError(t.client.Status().Patch(l.Context(), l.getNode("instance-1"), newConditionPatch(corev1.ConditionFalse)))
		l.waitForEvent("DriftNotRepaired", "all is lost")
		l.waitUntilReady("instance-1", "instance-2")
		if now := l.getInstance("instance-1"); now.Status.Summary != before.Status.Summary {
			l.Errorf("the instance says %s, before %s", now.Status.Summary, before.Status.Summary)
		}
	})
	l.runSubtest("gets a serving certificate for nobody else", func(l lab) {
		own, other := l.Host("instance-1").Options.Address, l.Host("instance-2").Options.Address
		reported := ofNode("instance-1").withServingNames([]string{"instance-1", "instance-2"}, own) // reported by an event; their number is limited
		l.createRequest(t.config, "stolen-another-nodes-name", certificatesv1.KubeletServingSignerName, reported)
		l.waitForEvent("ServingCertificateNotApproved", "stolen-another-nodes-name")
		for name, s := range map[string]subject{
			"another-node":          ofNode("instance-2").withServingNames([]string{"instance-2"}, other),
			"another-nodes-address": ofNode("instance-1").withServingNames([]string{"instance-1"}, own, other),
			"the-api-server":        ofNode("instance-1").withServingNames([]string{"instance-1", "kubernetes.default.svc"}, own),
			"its-internal-name":     ofNode("instance-1").withServingNames([]string{"api-int.lab.example.com"}, own),
			"a-service":             ofNode("instance-1").withServingNames([]string{"instance-1"}, own, "172.30.0.1"),
			"loopback":              ofNode("instance-1").withServingNames([]string{"instance-1"}, own, "127.0.0.1"),
			"a-wildcard":            ofNode("instance-1").withServingNames([]string{"*.apps.lab.example.com"}, own),
			"an-administrator":      {user: "system:admin", groups: []string{"system:masters"}, names: []string{"instance-1"}},
			"a-group-more": {user: "system:node:instance-1", groups: []string{"system:nodes", "system:masters"},
				names: []string{"instance-1"}},
			"a-name-with-another-dot": ofNode("instance-1").withServingNames([]string{"instance-1."}, own),
		} {
			// The API server itself forbids some of these requests to nodes.
			if _, err := l.tryRequest(t.config, "stolen-"+name, certificatesv1.KubeletServingSignerName, s); err != nil &&
				!apierrors.IsForbidden(err) {
				l.Error(err)
			}
		}
		if _, err := l.tryRequest(t.config, "stolen-first-of-another", certificatesv1.KubeAPIServerClientKubeletSignerName,
			ofNode("instance-2")); !apierrors.IsForbidden(err) {
			l.Errorf("a request for another node's client certificate: %v", err)
		}
		l.createRequest(t.config, "stolen-for-itself", certificatesv1.KubeletServingSignerName,
			ofNode("instance-1").withServingNames([]string{"instance-1"}, own))
		l.waitUntilSigned("stolen-for-itself") // the operator has already seen the earlier requests
		for name, request := range l.requestsByName() {
			if strings.HasPrefix(name, "stolen-") && name != "stolen-for-itself" &&
				(isApproved(request) || len(request.Status.Certificate) > 0) {
				l.Errorf("request %s was approved: %+v", name, request.Status.Conditions)
			}
		}
	})
}

func isApproved(request certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}

// A host reports its addresses itself. R-132
func TestStolenAddresses_GetNoCertificate(t *testing.T) {
	l := newInstalledLab(t, testenv.Options{LinuxNodes: 1, Hosts: []testenv.HostOptions{{Name: "liar"}, {Name: "victim"}}})
	l.withLinuxNodes(1)
	l.createMachine("not-yet-a-node", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.9.7.7"})
	own, victimAddress := l.Host("liar").Options.Address, l.Host("victim").Options.Address
	reserved := map[string]string{
		"a-linux-node": "10.0.0.10", "a-machine": "10.9.7.7", "another-instance": victimAddress,
		"a-service": "172.30.0.1", "loopback": "127.0.0.1", "metadata": "169.254.169.254",
	}
	l.TamperFacts(l.Host("liar"), func(facts *plan.Facts) {
		for _, address := range reserved {
			facts.System.Addresses = append(facts.System.Addresses, address)
		}
	})
	l.startOperator()
	l.list()
	l.waitUntilReady()
	attacker, victim := l.stealIdentity("liar", nodespec.ServiceKubelet), l.stealIdentity("victim", nodespec.ServiceKubelet)
	for name, address := range reserved {
		l.createRequest(attacker.config, "lie-"+name, certificatesv1.KubeletServingSignerName,
			ofNode("liar").withServingNames([]string{"liar"}, own, address))
	}
	l.createRequest(attacker.config, "its-own", certificatesv1.KubeletServingSignerName, ofNode("liar").withServingNames([]string{"liar"}, own))
	l.createRequest(victim.config, "the-victims-own", certificatesv1.KubeletServingSignerName,
		ofNode("victim").withServingNames([]string{"victim"}, victimAddress))
	l.waitUntilSigned("its-own")
	l.waitUntilSigned("the-victims-own")
	for name, request := range l.requestsByName() {
		if strings.HasPrefix(name, "lie-") && (isApproved(request) || len(request.Status.Certificate) > 0) {
			t.Errorf("request %s was approved: %+v", name, request.Status.Conditions)
		}
	}
}
