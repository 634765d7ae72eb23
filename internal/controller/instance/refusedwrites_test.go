package instance

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// refuseStatusWrites makes the API server refuse the next writes of an instance's status, and returns the number of
// remaining refusals.
func (x *trial) refuseStatusWrites(times int, err error) *int {
	x.t.Helper()
	api, ok := x.Client.(client.WithWatch)
	if !ok {
		x.t.Fatalf("it is a %T", x.Client)
	}
	x.Client = interceptor.NewClient(api, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, of string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			if _, instance := object.(*v1alpha1.WindowsInstance); instance && times > 0 {
				times--
				return err
			}
			return c.SubResource(of).Patch(ctx, object, patch, options...)
		},
	})
	return &times
}

// A reconcile without a written status has no effect: no job starts, no event is sent, and nothing is counted.
func TestReconcile_RefusedStatusWriteHasNoEffect(t *testing.T) {
	const times = 10
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "windowsinstances"}, machine, errors.New("it has changed"))
	for name, refusal := range map[string]error{"as a conflict": conflict, "for another reason": apierrors.NewInternalError(errors.New("no leader"))} {
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(listedInstance())}
		again := func(t *testing.T, x *trial, result ctrl.Result, err error) {
			t.Helper()
			if apierrors.IsConflict(refusal) && (err != nil || result.RequeueAfter <= 0) || !apierrors.IsConflict(refusal) && err == nil {
				t.Fatalf("the reconcile returns %+v, %v: nobody tries again", result, err)
			}
		}
		t.Run("before a change of the host, "+name, func(t *testing.T) {
			x, h, _ := nodeInService(t, "None")
			x.facts.Kubelet.ClusterDomain = "other.local"
			digest, applied, refused := x.getInstance().Status.SpecDigest, countEqual(h.agentCommands(), "apply"), 0
			for left := x.refuseStatusWrites(times, refusal); *left > 0; {
				before, begun := *left, x.Jobs.CountStarted()
				result, err := x.Reconcile(t.Context(), request)
				if *left < before {
					refused++
					if again(t, x, result, err); x.Jobs.CountStarted() != begun {
						t.Fatalf("after %d refusals a job has begun", refused)
					}
				}
				x.awaitJobs()
				if got := countEqual(h.agentCommands(), "apply"); got != applied || x.getInstance().Status.SpecDigest != digest {
					t.Fatalf("after %d refusals the host was told to %q", refused, h.agentCommands())
				}
			}
			x.reconcileUntil("the change", func(i *v1alpha1.WindowsInstance) bool {
				return i.Status.Summary == v1alpha1.ReasonReady && i.Status.SpecDigest == x.specDigest()
			})
			if got := countEqual(h.agentCommands(), "apply"); got != applied+1 || refused != times {
				t.Errorf("%d more applies after %d refusals", got-applied, refused)
			}
		})
		t.Run("after a job that has failed, "+name, func(t *testing.T) {
			x := newTrial(t, listedInstance())
			x.facts.Platform = "None"
			x.server = func(context.Context) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			if _, err := x.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			x.awaitJobs()
			left := x.refuseStatusWrites(times, refusal)
			for *left > 0 {
				result, err := x.Reconcile(t.Context(), request)
				again(t, x, result, err)
				if recorded := x.popEvents(); x.countDials() != 1 || x.Jobs.CountStarted() != 1 || len(recorded) > 0 || x.getSession(x.getInstance()).Attempts != 0 {
					t.Fatalf("%d connections, %d jobs, %d failures, events %q", x.countDials(), x.Jobs.CountStarted(), x.getSession(x.getInstance()).Attempts, recorded)
				}
			}
			instance, after := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, string(remote.ReasonUnreachable))
			failures := x.getSession(instance).Attempts
			events := slices.DeleteFunc(x.popEvents(), func(e string) bool { return !strings.Contains(e, string(remote.ReasonUnreachable)) })
			if x.countDials() != 1 || failures != 1 || len(events) != 1 || after <= 0 || after > minRetryDelay*2 {
				t.Errorf("%d connections, %d failures, the next attempt is after %s; events %q", x.countDials(), failures, after, events)
			}
		})
	}
}

func countEqual(all []string, one string) (n int) {
	for _, each := range all {
		if each == one {
			n++
		}
	}
	return n
}
