package nodes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// liveGets counts what is read from the API server.
type liveGets struct {
	client.Reader
	count int
}

func (l *liveGets) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	l.count++
	return l.Reader.Get(ctx, key, object, options...)
}

func TestAPassWaitsForItsNode(t *testing.T) {
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "win-1", UID: "uid", Generation: 1},
		Status: v1alpha1.WindowsInstanceStatus{NodeRef: &v1alpha1.NodeReference{Name: "win-1"}}}
	waiter := Waiter{Instance: instance, Began: instance}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	annotated := func(node *corev1.Node) bool { return node.Annotations["wanted"] != "" }
	registered := func() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}} }
	type answer struct {
		node *corev1.Node
		err  error
		took time.Duration
	}
	// begin has a pass wait, and returns what ends with its answer.
	begin := func(ctx context.Context) (Nodes, *liveGets, chan answer) {
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(instance.DeepCopy()).Build()
		live := &liveGets{Reader: api}
		n := Nodes{Client: api, Live: live, Changes: &Changes{}, Clock: clock.RealClock{}}.InPass()
		answers := make(chan answer, 1)
		began := time.Now()
		go func() {
			node, err := n.Await(ctx, waiter, annotated)
			answers <- answer{node, err, time.Since(began)}
		}()
		synctest.Wait()
		return n, live, answers
	}
	t.Run("until a change makes it as wanted, and asks the API server only then", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n, live, answers := begin(t.Context())
			time.Sleep(time.Second)
			node := registered()
			if err := n.Client.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			n.Changes.Happened("win-1")
			synctest.Wait()
			if live.count != 1 || len(answers) > 0 {
				t.Fatalf("the API server was asked %d times, and %d answers came for a Node that is not as wanted", live.count, len(answers))
			}
			node.Annotations = map[string]string{"wanted": "yes"}
			if err := n.Client.Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			n.Changes.Happened("another")
			synctest.Wait()
			if len(answers) > 0 {
				t.Fatal("another Node's change has ended the wait")
			}
			n.Changes.Happened("win-1")
			if a := <-answers; a.err != nil || a.node == nil || !annotated(a.node) || a.took != time.Second || live.count != 2 {
				t.Errorf("%+v, the API server was asked %d times", a, live.count)
			}
		})
	})
	t.Run("no longer than a moment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n, _, answers := begin(t.Context())
			if a := <-answers; a.err != nil || a.node != nil || a.took != patience || n.Waited() != patience {
				t.Errorf("%+v, and it says that it has waited for %s", a, n.Waited())
			}
			if left := len(n.Changes.waiting); left > 0 {
				t.Errorf("%d changes are awaited for which nobody waits", left)
			}
		})
	})
	t.Run("also when the API server does not have it as the cache does, which is behind", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n, live, answers := begin(t.Context())
			cached := registered()
			cached.Annotations = map[string]string{"wanted": "yes"}
			if err := n.Client.Create(t.Context(), cached); err != nil {
				t.Fatal(err)
			}
			api := live.Reader
			live.Reader = fake.NewClientBuilder().WithScheme(scheme).Build()
			n.Changes.Happened("win-1")
			if synctest.Wait(); live.count != 2 || len(answers) > 0 {
				t.Fatalf("the API server was asked %d times, %d answers", live.count, len(answers))
			}
			live.Reader = api
			time.Sleep(time.Second)
			n.Changes.Happened("win-1")
			if a := <-answers; a.err != nil || a.node == nil || a.took != time.Second {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("not when there is no connection to the host any more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan struct{})
			waiter.Lost = ended
			_, _, answers := begin(t.Context())
			waiter.Lost = nil
			close(ended)
			if a := <-answers; a.err != nil || a.node != nil || a.took != 0 {
				t.Errorf("%+v", a)
			}
		})
	})
	for name, change := range map[string]func(Nodes, *v1alpha1.WindowsInstance) error{
		"something else is wanted of the instance": func(n Nodes, i *v1alpha1.WindowsInstance) error {
			i.Generation++
			return n.Client.Update(t.Context(), i)
		},
		"the instance is gone": func(n Nodes, i *v1alpha1.WindowsInstance) error { return n.Client.Delete(t.Context(), i) },
		"it was made again": func(n Nodes, i *v1alpha1.WindowsInstance) error {
			i.UID = "another"
			return n.Client.Update(t.Context(), i)
		},
	} {
		t.Run("not when "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, _, answers := begin(t.Context())
				present := &v1alpha1.WindowsInstance{}
				if err := n.Client.Get(t.Context(), client.ObjectKeyFromObject(instance), present); err != nil {
					t.Fatal(err)
				}
				n.Changes.Happened("win-1")
				if synctest.Wait(); len(answers) > 0 {
					t.Fatal("it ended before")
				}
				if err := change(n, present); err != nil {
					t.Fatal(err)
				}
				n.Changes.Happened("win-1")
				if a := <-answers; a.err != nil || a.node != nil || a.took != 0 {
					t.Errorf("%+v", a)
				}
			})
		})
	}
	t.Run("not when the operator ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			_, _, answers := begin(ctx)
			end()
			if a := <-answers; a.node != nil || a.took != 0 {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("and not at all where nobody tells of changes", func(t *testing.T) {
		api := fake.NewClientBuilder().Build()
		n := Nodes{Client: api, Live: api}
		if node, err := n.Await(t.Context(), waiter, annotated); err != nil || node != nil {
			t.Errorf("%v, %v", node, err)
		}
	})
}

func TestWhatAPassHasReadOfItsNodeServesItForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instance := &v1alpha1.WindowsInstance{Status: v1alpha1.WindowsInstanceStatus{NodeRef: &v1alpha1.NodeReference{Name: "win-1"}}}
		api := fake.NewClientBuilder().WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}}).Build()
		live := &liveGets{Reader: api}
		all := Nodes{Client: api, Live: live, Clock: clock.RealClock{}}
		n := all.InPass()
		look := func(n Nodes) *corev1.Node {
			t.Helper()
			node, err := n.Recent(t.Context(), instance)
			if err != nil || node == nil {
				t.Fatalf("%v, %v", node, err)
			}
			return node
		}
		node := look(n)
		if look(n); live.count != 1 {
			t.Errorf("two looks have asked %d times", live.count)
		}
		after := node.DeepCopy()
		after.Labels = map[string]string{"written": "yes"}
		if err := n.Patch(t.Context(), node, after); err != nil {
			t.Fatal(err)
		}
		if look(n).Labels["written"] == "" || live.count != 1 {
			t.Errorf("what was written is not known, after %d reads", live.count)
		}
		if look(all.InPass()); live.count != 2 {
			t.Error("another pass goes by what this one has read")
		}
		time.Sleep(recent)
		if look(n); live.count != 3 {
			t.Error("a second later it was not asked again")
		}
	})
}
