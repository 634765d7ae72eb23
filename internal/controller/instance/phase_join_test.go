package instance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// A node works without reports.
func TestANodeWhoseAgentGetsNoCertificateJoinsAndGetsItLater(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	off := true
	x.clientset.PrependReactor("create", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		request := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
		return off && request.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName, nil, errors.New("no such signer here")
	})
	instance := x.joins()
	identities := x.identitiesOf()
	agent := identities[slices.IndexFunc(identities, func(i nodespec.Identity) bool { return i.Name == nodespec.ServiceAgent })]
	if h.certificate(identities[0]) == nil || h.certificate(agent) != nil {
		t.Fatalf("the kubelet has %v, the agent %v", h.certificate(identities[0]), h.certificate(agent))
	}
	expect(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	x.letTimePass()

	instance = x.until("that it is told", summarized(v1alpha1.ReasonAPIRequestFailed))
	expect(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	condition := expect(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonAPIRequestFailed)
	if !strings.Contains(condition.Message, nodespec.ServiceAgent) || !strings.Contains(condition.Message, "no such signer here") {
		t.Errorf("it says %q", condition.Message)
	}
	off = false
	x.until("the agent's certificate", func(*v1alpha1.WindowsInstance) bool { return h.certificate(agent) != nil })
	instance = x.until("all in order", summarized(v1alpha1.ReasonReady))
	expect(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// liveLists counts the lists that are read from the API server.
type liveLists struct {
	client.Reader
	count int
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.count++
	return l.Reader.List(ctx, list, options...)
}

// All hosts of a fleet that join at once would list all of the fleet each time that they look.
func TestToWaitForANodeListsNothing(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.until("the kubelet's certificate", summarized(v1alpha1.ReasonNodeNotRegistered))
	lists := &liveLists{Reader: x.Live}
	x.Live = lists
	for range 3 {
		x.clock.Step(time.Second)
		if instance, _ := x.reconcile(); instance.Status.Summary != v1alpha1.ReasonNodeNotRegistered || lists.count > 0 {
			t.Fatalf("it is %s, after %d lists", instance.Status.Summary, lists.count)
		}
	}
}
