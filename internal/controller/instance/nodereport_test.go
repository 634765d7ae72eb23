package instance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// report is that of the Node of the trial's instance; nil when there is none.
func (x *trial) report() *v1alpha1.WindowsNodeReport {
	x.t.Helper()
	report := &v1alpha1.WindowsNodeReport{}
	err := x.Client.Get(x.t.Context(), client.ObjectKey{Namespace: ourNamespace, Name: machine}, report)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return report
}

func TestAnAgentHasAReportToWriteFromTheMomentItsNodeIsBound(t *testing.T) {
	x, _ := joins(t, ofMachine())
	report := x.report()
	if report == nil || report.Annotations[v1alpha1.AnnotationInstance] != machine || report.Status.State != "" {
		t.Fatalf("the report is %+v", report)
	}
	if len(report.OwnerReferences)+len(report.Finalizers) > 0 {
		t.Errorf("its end hangs on others: %+v", report.ObjectMeta)
	}
}

func TestAReportLivesAsLongAsItsNode(t *testing.T) {
	inService := func(t *testing.T) (*trial, *v1alpha1.WindowsInstance) {
		t.Helper()
		x := newTrial(t)
		instance := ofMachine()
		x.asNode(instance, x.key.Hash())
		instance, _ = x.reconcile()
		if x.report() == nil {
			t.Fatal("a node in service has no report")
		}
		return x, instance
	}
	t.Run("one that was deleted is made again, without a look at the host", func(t *testing.T) {
		x, _ := inService(t)
		dials := x.dials
		if err := x.Client.Delete(t.Context(), x.report()); err != nil {
			t.Fatal(err)
		}
		x.reconcile()
		if x.report() == nil || x.dials != dials {
			t.Errorf("report %v, %d connections", x.report(), x.dials-dials)
		}
	})
	t.Run("and its instance is looked at for that", func(t *testing.T) {
		x, _ := inService(t)
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		x.reportWatch().Delete(t.Context(), event.DeleteEvent{Object: x.report()}, queue)
		if queue.Len() != 1 {
			t.Fatalf("%d instances are looked at", queue.Len())
		}
		if request, _ := queue.Get(); request.Name != machine || request.Namespace != ourNamespace {
			t.Errorf("looked at is %v", request)
		}
	})
	t.Run("one that is there is left as it is", func(t *testing.T) {
		x, _ := inService(t)
		before := x.report()
		x.reconcile()
		if after := x.report(); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("it was written: %+v", after)
		}
	})
	t.Run("it goes with the node", func(t *testing.T) {
		x, instance := inService(t)
		x.change(instance, remove)
		if left, _ := x.reconcile(); left != nil || x.report() != nil {
			t.Errorf("left is %v, the report %v", left, x.report())
		}
	})
	t.Run("it stays when it is another instance's by now", func(t *testing.T) {
		x, instance := inService(t)
		report := x.report()
		report.Annotations[v1alpha1.AnnotationInstance] = "another"
		if err := x.Client.Update(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		s := x.newScope(instance)
		if o := x.forgetReport(t.Context(), s); o != nil || x.report() == nil {
			t.Errorf("obstacle %v, report %v", o, x.report())
		}
	})
	t.Run("and is taken over with the node", func(t *testing.T) {
		x, _ := inService(t)
		report := x.report()
		report.Annotations[v1alpha1.AnnotationInstance] = "before"
		if err := x.Client.Update(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		x.reconcile()
		if owner := x.report().Annotations[v1alpha1.AnnotationInstance]; owner != machine {
			t.Errorf("it is that of %q", owner)
		}
	})
}

func TestANodeIsNotHeldUpByItsReport(t *testing.T) {
	x := newTrial(t)
	instance := ofMachine()
	x.asNode(instance, x.key.Hash())
	inner, ok := x.Client.(client.WithWatch)
	if !ok {
		t.Fatal("the API server in memory has no watch")
	}
	x.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, report := o.(*v1alpha1.WindowsNodeReport); report {
				return errors.New("no such kind")
			}
			return c.Create(ctx, o, options...)
		},
	})
	instance, _ = x.reconcile()
	expect(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

func drift(step string, second int, repaired bool) v1alpha1.NodeDrift {
	return v1alpha1.NodeDrift{Step: step, Reason: "is stopped", Time: metav1.NewTime(noon.Add(time.Duration(second) * time.Second)), Repaired: repaired}
}

func TestWhatIsNewInAReportIsTold(t *testing.T) {
	status := func(state v1alpha1.NodeReportState, message string, drifts ...v1alpha1.NodeDrift) v1alpha1.WindowsNodeReportStatus {
		return v1alpha1.WindowsNodeReportStatus{State: state, Message: message, Drift: drifts}
	}
	for name, c := range map[string]struct {
		before, after v1alpha1.WindowsNodeReportStatus
		want          []string // parts of the one event; none for no event
	}{
		"the first report of a host in order": {status("", ""), status("InSync", ""), nil},
		"only its time":                       {status("InSync", "", drift("kubelet", 1, true)), status("InSync", "", drift("kubelet", 1, true)), nil},
		"what was put back":                   {status("InSync", ""), status("InSync", "", drift("kubelet", 1, true)), []string{"Normal DriftRepaired", "put back", "kubelet (is stopped)"}},
		"the same step once more": {status("InSync", "", drift("kubelet", 1, true)), status("InSync", "", drift("kubelet", 2, true), drift("kubelet", 1, true)),
			[]string{"Normal DriftRepaired", "kubelet"}},
		"all that is new, in one event": {status("InSync", ""), status("InSync", "", drift("kubelet", 2, true), drift("hosts file", 1, true)),
			[]string{"Normal DriftRepaired", "kubelet", "hosts file"}},
		"what could not be put back, before what could": {status("InSync", ""), status("Drifted", "", drift("kubelet", 2, false), drift("hosts file", 1, true)),
			[]string{"Warning HostDrifted", "kubelet"}},
		"that only the operator can put it right": {status("InSync", ""), status("Drifted", "files are missing"), []string{"Warning HostDrifted", "files are missing"}},
		"the same message once more":              {status("Drifted", "files are missing"), status("Drifted", "files are missing"), nil},
		"that the host is in order again":         {status("Drifted", "files are missing"), status("InSync", ""), nil},
		"what was left and is put back now": {status("Drifted", "", drift("kubelet", 1, false)), status("InSync", "", drift("kubelet", 1, true)),
			[]string{"Normal DriftRepaired", "kubelet"}},
		"no control of a terminal": {status("InSync", ""), status("Drifted", "\x1b[2Jall is well\n\u202eyou"), []string{"[2Jall is well you"}},
		"no more than an event holds": {status("InSync", ""), status("Drifted", "", drift(strings.Repeat("x", 256), 1, false), drift(strings.Repeat("x", 256), 2, false),
			drift(strings.Repeat("x", 256), 3, false), drift(strings.Repeat("x", 256), 4, false), drift(strings.Repeat("x", 256), 5, false)), []string{"Warning HostDrifted", "xxx", "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, ofMachine())
			report := func(status v1alpha1.WindowsNodeReportStatus) *v1alpha1.WindowsNodeReport {
				return &v1alpha1.WindowsNodeReport{
					ObjectMeta: metav1.ObjectMeta{Namespace: ourNamespace, Name: machine, Annotations: map[string]string{v1alpha1.AnnotationInstance: machine}}, Status: status,
				}
			}
			x.reportWatch().Update(t.Context(), event.UpdateEvent{ObjectOld: report(c.before), ObjectNew: report(c.after)}, nil)
			if len(c.want) == 0 {
				if len(x.recorder.Events) > 0 {
					t.Errorf("told was %s", <-x.recorder.Events)
				}
				return
			}
			if len(x.recorder.Events) != 1 {
				t.Fatalf("there are %d events", len(x.recorder.Events))
			}
			told := <-x.recorder.Events
			for _, part := range c.want {
				if !strings.Contains(told, part) {
					t.Errorf("told was %q, without %q", told, part)
				}
			}
			if strings.ContainsAny(told, "\x1b\n\u202e") || len(told) > longestNote+100 {
				t.Errorf("told was %q", told)
			}
		})
	}
}

func TestAReportOfAHostThatIsNoLongerANodeIsNotTold(t *testing.T) {
	instance := ofMachine()
	remove(instance)
	x := newTrial(t, instance)
	for _, of := range []string{machine, "nobody", ""} {
		report := &v1alpha1.WindowsNodeReport{ObjectMeta: metav1.ObjectMeta{Namespace: ourNamespace, Name: machine, Annotations: map[string]string{v1alpha1.AnnotationInstance: of}}}
		drifted := report.DeepCopy()
		drifted.Status = v1alpha1.WindowsNodeReportStatus{State: v1alpha1.NodeReportDrifted, Message: "all is lost"}
		x.reportWatch().Update(t.Context(), event.UpdateEvent{ObjectOld: report, ObjectNew: drifted}, nil)
	}
	if len(x.recorder.Events) > 0 {
		t.Errorf("told was %s", <-x.recorder.Events)
	}
}
