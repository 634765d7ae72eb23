package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// answers are what the API server says when it is asked, one after the other; the last one is repeated forever.
type answers []func() (bool, error)

func no() (bool, error)      { return false, nil }
func yes() (bool, error)     { return true, nil }
func failing() (bool, error) { return false, errors.New("no answer") }

//
func TestWhenServed(t *testing.T) {
	for name, test := range map[string]struct {
		answers answers
		after   time.Duration
	}{
		"what is served is started at once":                   {answers{yes}, 0},
		"what is served later is started within a minute":     {answers{no, no, no, yes}, 3 * servedInterval},
		"an API server that gives no answer is asked again":   {answers{failing, failing, yes}, 2 * servedInterval},
		"an answer that changes its mind is not asked before": {answers{no, failing, no, yes}, 3 * servedInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				asked, started := 0, 0
				var lines []string
				w := &whenServed{
					resource: machineResource, clock: clock.RealClock{},
					log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
					served: func(context.Context, schema.GroupVersionResource) (bool, error) {
						asked++
						return test.answers[min(asked, len(test.answers))-1]()
					},
					setUp: func(ctrl.Manager) error { started++; return nil },
				}
				if err := w.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if started != 1 || time.Since(begin) != test.after {
					t.Errorf("started %d times, the last after %s", started, time.Since(begin))
				}
				for i := 1; i < len(lines); i++ {
					if lines[i] == lines[i-1] {
						t.Errorf("said twice in a row: %s", lines[i])
					}
				}
			})
		})
	}
	t.Run("an error of the start ends the operator, and says of what", func(t *testing.T) {
		w := &whenServed{resource: machineResource, clock: clock.RealClock{},
			served: func(context.Context, schema.GroupVersionResource) (bool, error) { return true, nil },
			setUp:  func(ctrl.Manager) error { return errors.New("name taken") }}
		if err := w.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "machines.machine.openshift.io") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("what is gone again when it is started is waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begin, started := time.Now(), 0
			w := &whenServed{resource: machineResource, clock: clock.RealClock{},
				served: func(context.Context, schema.GroupVersionResource) (bool, error) { return true, nil },
				setUp: func(ctrl.Manager) error {
					started++
					if started < 3 {
						return fmt.Errorf("make a cache: %w", &meta.NoKindMatchError{})
					}
					return nil
				}}
			if err := w.Start(t.Context()); err != nil || started != 3 || time.Since(begin) != 2*servedInterval {
				t.Errorf("started %d times, the last after %s; error %v", started, time.Since(begin), err)
			}
		})
	})
	t.Run("what follows from its absence is done once, and tried again until it goes well", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			asked, missing := 0, 0
			var lines []string
			w := &whenServed{
				resource: machineResource, clock: clock.RealClock{},
				log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
				served: func(context.Context, schema.GroupVersionResource) (bool, error) {
					asked++
					return answers{failing, no, no, no, yes}[asked-1]()
				},
				missing: func(context.Context) error {
					missing++
					if missing == 1 {
						return errors.New("the way is barred")
					}
					return nil
				},
				setUp: func(ctrl.Manager) error { return nil },
			}
			if err := w.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if missing != 2 || !strings.Contains(strings.Join(lines, "\n"), "the way is barred") {
				t.Errorf("tried %d times; said was %q", missing, lines)
			}
		})
	})
	t.Run("an operator that ends waits no longer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), servedInterval/2)
			defer cancel()
			w := &whenServed{resource: machineResource, clock: clock.RealClock{},
				served: func(context.Context, schema.GroupVersionResource) (bool, error) { return false, nil },
				setUp:  func(ctrl.Manager) error { t.Error("it is started"); return nil }}
			if err := w.Start(ctx); err != nil {
				t.Error(err)
			}
		})
	})
}

// ending is a manager that takes nothing any more.
type ending struct{ ctrl.Manager }

func (ending) Add(manager.Runnable) error { return errors.New("the manager is ending") }

func TestWhatIsServedRunsUntilTheOperatorEnds(t *testing.T) {
	t.Run("without the manager, which may be ending", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var running atomic.Int32
			until := manager.RunnableFunc(func(ctx context.Context) error {
				running.Add(1)
				<-ctx.Done()
				running.Add(-1)
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			w := &whenServed{manager: ending{}, resource: machineResource, clock: clock.RealClock{},
				served: func(context.Context, schema.GroupVersionResource) (bool, error) { return true, nil },
				setUp: func(mgr ctrl.Manager) error {
					return errors.Join(mgr.Add(until), mgr.Add(until))
				}}
			ended := make(chan error, 1)
			go func() { ended <- w.Start(ctx) }()
			synctest.Wait()
			if running.Load() != 2 || len(ended) != 0 {
				t.Errorf("%d of 2 run; ended: %d", running.Load(), len(ended))
			}
			cancel()
			if err := <-ended; err != nil || running.Load() != 0 {
				t.Errorf("%d still run; error %v", running.Load(), err)
			}
		})
	})
	t.Run("and ends it with the error of one of them", func(t *testing.T) {
		w := &whenServed{manager: ending{}, resource: machineResource, clock: clock.RealClock{},
			served: func(context.Context, schema.GroupVersionResource) (bool, error) { return true, nil },
			setUp: func(mgr ctrl.Manager) error {
				return errors.Join(
					mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return nil })),
					mgr.Add(manager.RunnableFunc(func(context.Context) error { return errors.New("no cache") })))
			}}
		if err := w.Start(t.Context()); err == nil || err.Error() != "no cache" {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestServedBy(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   bool
		fails  bool
	}{
		"an API server with the resource has it": {200,
			`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"machine.openshift.io/v1beta1","resources":[{"name":"machinesets"},{"name":"machines"}]}`, true, false},
		"one that has others of the group has it not": {200,
			`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"machine.openshift.io/v1beta1","resources":[{"name":"machinesets"}]}`, false, false},
		"one without the group has it not":             {404, `404 page not found`, false, false},
		"one that cannot answer says nothing about it": {500, `broken`, false, true},
		"one that is not to be asked says nothing either": {403,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/machine.openshift.io/v1beta1" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			t.Cleanup(server.Close)
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got, err := servedBy(client.RESTClient())(t.Context(), machineResource)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("served: %t, error %v", got, err)
			}
		})
	}
}
