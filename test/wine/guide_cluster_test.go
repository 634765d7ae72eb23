package wine_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"net"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// waitForReport waits until the instance of an address reports one of these reasons, and returns the complete report.
func (l *lab) waitForReport(address string, reasons ...string) (status string) {
	l.Helper()
	l.waitForInstanceAt(address, "to say "+strings.Join(reasons, " or "), func(instance *v1alpha1.WindowsInstance) bool {
		if instance == nil || !slices.Contains(reasons, instance.Status.Summary) {
			return false
		}
		status = testenv.Explain(instance)
		return true
	})
	return status
}

// awaitEvent waits for an event in the operator's namespace with the reason and with the text in its note.
func (l *lab) awaitEvent(reason, text string) {
	l.Helper()
	l.awaitObject("event "+reason+" about "+text, &eventsv1.Event{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			var list eventsv1.EventList
			err := reader.List(ctx, &list, client.InNamespace(l.Namespace()))
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Reason == reason && strings.Contains(e.Note, text)
			}), err
		})
}

func (l *lab) awaitObject(what string, watched client.Object, condition func(context.Context,
	client.Reader) (bool, error)) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	requireNoError(l.T, l.WaitFor(ctx, what, watched, condition))
}

// followNode watches the Node of a host from now on. The returned function checks that the Node had the start-up
// taint until it was verified.
func (l *lab) followNode(h *wine.Host) (proven func()) {
	l.Helper()
	watching, err := l.Client.Watch(l.Context(), &corev1.NodeList{}, client.MatchingFields{"metadata.name": nodeName(h)})
	requireNoError(l.T, err)
	l.Cleanup(watching.Stop)
	states := make(chan []string, 1)
	go func() {
		var seen []string
		for event := range watching.ResultChan() {
			n, ok := event.Object.(*corev1.Node)
			if !ok {
				continue
			}
			seen = append(seen, verificationState(n))
			if seen[len(seen)-1] != keepsPodsOff {
				break
			}
		}
		states <- slices.Compact(seen)
	}()
	return func() {
		l.Helper()
		if got, want := <-states, []string{keepsPodsOff, "proven"}; !slices.Equal(got, want) {
			l.Errorf("the node of %s was, one after the other: %q; want %q", h.Name(), got, want)
		}
	}
}

const keepsPodsOff = "keeps pods off"

func verificationState(n *corev1.Node) string {
	version := n.Annotations[v1alpha1.AnnotationVersion]
	tainted := slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == v1alpha1.TaintNotReady
	})
	switch {
	case tainted && version == "":
		return keepsPodsOff
	case !tainted && version != "":
		return "proven"
	case tainted:
		return "of version " + version + ", and keeps pods off"
	}
	return "open to pods before it was proven"
}

// checkNothingLeft checks that no object of a host's node is left in the cluster.
func (l *lab) checkNothingLeft(h *wine.Host) {
	l.Helper()
	name := nodeName(h)
	if err := l.Client.Get(l.Context(), client.ObjectKey{Name: name}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		l.Errorf("Node %s is still there (%v)", name, err)
	}
	var requests certificatesv1.CertificateSigningRequestList
	requireNoError(l.T, l.Client.List(l.Context(), &requests))
	for _, request := range requests.Items {
		if strings.Contains(request.Name, name) || len(request.Status.Conditions) == 0 {
			l.Errorf("CertificateSigningRequest %s of %s is left", request.Name, request.Spec.Username)
		}
	}
}

const guidePod = "guide"

// checkPodLog reads the log of a pod. The API server connects to the kubelet at port 10250 for it.
func (g *guide) checkPodLog() {
	h := g.nameless
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: guidePod},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelOSStable: "windows", corev1.LabelHostname: nodeName(h)},
			Tolerations: []corev1.Toleration{{Key: "os", Value: "Windows",
				Effect: corev1.TaintEffectNoSchedule}},
			Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
			TerminationGracePeriodSeconds: ptr.To[int64](1),
		},
	}
	requireNoError(g.T, g.Client.Create(g.Context(), pod)) // the pod stays until the node is drained
	g.awaitObject("the pod to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		now := &corev1.Pod{}
		err := reader.Get(ctx, client.ObjectKeyFromObject(pod), now)
		return err == nil && now.Status.Phase == corev1.PodRunning, client.IgnoreNotFound(err)
	})
	clientset, err := kubernetes.NewForConfig(g.Config)
	requireNoError(g.T, err)
	stream, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(g.Context())
	requireNoError(g.T, err)
	defer stream.Close()
	logs, err := io.ReadAll(stream)
	requireNoError(g.T, err)
	if !strings.Contains(string(logs), "on "+nodeName(h)) {
		g.Errorf("the log is %q", logs)
	}
}

// request is a request for a serving certificate.
type request struct {
	name, user, commonName string
	group                  string
	dns, address           string
}

func (g *guide) checkForeignRequests() {
	const nodes = "system:nodes"
	node, own := "system:node:"+nodeName(g.named), addressOf(g.named)
	otherRequests := []request{
		{"of-a-linux-node", "system:node:worker-0", "system:node:worker-0", nodes, "worker-0", "10.89.9.9"},
		{"in-the-name-of-the-windows-node", "mallory", node, "system:masters", nodeName(g.named), own},
		{"for-another-name", node, node, nodes, "api.lab.example.com", own},
		{"for-another-address", node, node, nodes, nodeName(g.named), "10.89.9.9"},
	}
	for _, other := range otherRequests {
		g.createRequest(other)
	}
	// The approver has already seen the earlier requests when this request is signed.
	g.createRequest(request{"for-its-own", node, node, nodes, nodeName(g.named), own})
	g.awaitObject("the node's own request to be signed", &certificatesv1.CertificateSigningRequest{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			signed := &certificatesv1.CertificateSigningRequest{}
			err := reader.Get(ctx, client.ObjectKey{Name: "for-its-own"}, signed)
			return err == nil && len(signed.Status.Certificate) > 0, client.IgnoreNotFound(err)
		})
	for _, name := range []string{"for-another-name", "for-another-address"} {
		g.awaitEvent("ServingCertificateNotApproved", name)
	}
	for _, other := range otherRequests {
		undecided := &certificatesv1.CertificateSigningRequest{}
		requireNoError(g.T, g.Client.Get(g.Context(), client.ObjectKey{Name: other.name}, undecided))
		if len(undecided.Status.Conditions) > 0 {
			g.Errorf("request %s was decided: %+v", other.name, undecided.Status.Conditions)
		}
		requireNoError(g.T, g.Client.Delete(g.Context(), undecided)) // the removal of a node checks for undecided requests
	}
}

// createRequest creates the request as its user.
func (g *guide) createRequest(r request) {
	g.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	requireNoError(g.T, err)
	template := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: r.commonName, Organization: []string{"system:nodes"}},
		DNSNames: []string{r.dns}, IPAddresses: []net.IP{net.ParseIP(r.address)},
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	requireNoError(g.T, err)
	config := rest.CopyConfig(g.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: r.user, Groups: []string{r.group, "system:authenticated"}}
	clientset, err := kubernetes.NewForConfig(config)
	requireNoError(g.T, err)
	_, err = clientset.CertificatesV1().CertificateSigningRequests().Create(g.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: r.name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				SignerName: certificatesv1.KubeletServingSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			},
		}, metav1.CreateOptions{})
	requireNoError(g.T, err)
}
