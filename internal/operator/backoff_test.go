package operator

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// additions is a manager that keeps the added runnables without running them.
type additions struct {
	ctrl.Manager
	runnables []manager.Runnable
}

func (a *additions) Add(runnable manager.Runnable) error {
	a.runnables = append(a.runnables, runnable)
	return nil
}

// controllersOf adds all controllers to a manager without an API server, and returns the rate limiters by name.
func controllersOf(t *testing.T) map[string]workqueue.TypedRateLimiter[reconcile.Request] {
	t.Helper()
	c := Config{
		RESTConfig: &rest.Config{Host: "https://127.0.0.1:1"}, Namespace: "wmco", Clock: clock.RealClock{},
		PayloadDirectory: smallPayload(t), MetricsAddress: "0", ProbeAddress: "0",
		SkipNameValidation: true,
	}
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	options := c.managerOptions(scheme, c.newUnreadableKinds())
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(nil)
		for kind := range scheme.AllKnownTypes() {
			scope := meta.RESTScopeNamespace
			switch kind.Kind {
			case "Node", "Namespace", "CertificateSigningRequest", "ValidatingAdmissionPolicy",
				"ValidatingAdmissionPolicyBinding":
				scope = meta.RESTScopeRoot
			}
			mapper.Add(kind, scope)
		}
		return mapper, nil
	}
	mgr, err := ctrl.NewManager(c.RESTConfig, options)
	if err != nil {
		t.Fatal(err)
	}
	all := &additions{Manager: mgr}
	if _, err := c.addControllers(all, &servedKinds{atStart: sets.New(machineKind, machineSetKind)}); err != nil {
		t.Fatal(err)
	}
	limiters := map[string]workqueue.TypedRateLimiter[reconcile.Request]{}
	for _, runnable := range all.runnables {
		// The type of a controller is internal to controller-runtime.
		fields := reflect.Indirect(reflect.ValueOf(runnable))
		if fields.Kind() != reflect.Struct || !fields.FieldByName("RateLimiter").IsValid() {
			continue
		}
		limiter, ok := fields.FieldByName("RateLimiter").Interface().(workqueue.TypedRateLimiter[reconcile.Request])
		if !ok {
			t.Fatalf("%T has another rate limiter", runnable)
		}
		limiters[fmt.Sprint(fields.FieldByName("Name"))] = limiter
	}
	return limiters
}

// smallPayload returns the directory of a payload that contains only an agent.
func smallPayload(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	agent := payload.Source{
		Component: payload.Component{Name: payload.ComponentAgent, Version: "v1", Source: "example.org/wicd@v1",
			Files: []payload.File{{Path: "wicd.exe"}}},
		Content: []func() (io.ReadCloser, error){func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("MZ")), nil
		}},
	}
	if _, err := payload.Write(directory, payload.Build{Version: "1.2.3", Components: []payload.Source{agent}}); err != nil {
		t.Fatal(err)
	}
	return directory
}

// After any number of errors, each controller retries within a minute.
func TestControllers_RetryWithinOneMinute(t *testing.T) {
	limiters := controllersOf(t)
	for _, name := range []string{"instance", "byoh-source", "machine-source", "replacement", "admission", "csr"} {
		if limiters[name] == nil {
			t.Errorf("there is no controller %s", name)
		}
	}
	for name, limiter := range limiters {
		t.Run(name, func(t *testing.T) {
			var wait time.Duration
			for range 30 {
				wait = limiter.When(reconcile.Request{})
			}
			if wait != queue.MaxRetryDelay || wait > time.Minute {
				t.Errorf("after many errors it waits %s", wait)
			}
		})
	}
}
