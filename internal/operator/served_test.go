package operator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var (
	proxyKind = configv1.GroupVersion.WithKind("Proxy")
	imageKind = configv1.GroupVersion.WithKind("Image")
)

// the operator must restart when the API server adds or removes a kind after the start of the operator.
func TestServedKinds_ChangeRestartsOperator(t *testing.T) {
	type answer = sets.Set[schema.GroupVersionKind]
	none, machines, both := answer{}, sets.New(machineKind), sets.New(machineKind, proxyKind)
	for name, c := range map[string]struct {
		atStart   answer
		suspected bool
		answers   []answer      // nil is a failed request; the last one is repeated
		after     time.Duration // zero for never
		log       string
	}{
		"the Machine API is installed":                 {none, false, []answer{none, machines}, 3 * servedInterval, `"new"=["Machine.machine.openshift.io"]`},
		"the Machine API is removed":                   {both, true, []answer{{}}, 2 * servedInterval, `"missing"=["Machine.machine.openshift.io" "Proxy.config.openshift.io"]`},
		"another kind is installed":                    {machines, false, []answer{both}, 2 * servedInterval, `"new"=["Proxy.config.openshift.io"]`},
		"a kind is missing once":                       {both, true, []answer{machines, both}, 0, ""},
		"a kind is missing now and then":               {machines, false, []answer{none, machines, none, machines}, 0, ""},
		"a failed request is no answer":                {machines, false, []answer{none, nil, none, machines}, 3 * servedInterval, `"missing"=`},
		"an API server that does not answer for hours": {machines, false, []answer{nil}, 0, ""},
		"nothing changes":                              {both, true, []answer{both}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				begin, requests := time.Now(), 0
				var restarted time.Duration
				var lines []string
				s := &servedKinds{all: len(both), atStart: c.atStart, suspected: make(chan struct{}, 1), clock: clock.RealClock{},
					restart: func() { restarted = time.Since(begin) },
					log:     funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
					read: func(context.Context) (answer, error) {
						requests++
						if next := c.answers[min(requests, len(c.answers))-1]; next != nil {
							return next, nil
						}
						return nil, errors.New("no answer")
					}}
				if c.suspected {
					s.suspected <- struct{}{}
				}
				if err := s.Start(ctx); err != nil {
					t.Fatal(err)
				}
				if restarted != c.after || !strings.Contains(strings.Join(lines, "\n"), c.log) {
					t.Errorf("started again after %s, want %s; the log: %q", restarted, c.after, lines)
				}
			})
		})
	}
	t.Run("with all kinds, nothing is read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s := &servedKinds{all: len(both), atStart: both, clock: clock.RealClock{},
				read: func(context.Context) (answer, error) { t.Error("the kinds are read"); return both, nil }}
			if err := s.Start(ctx); err != nil {
				t.Error(err)
			}
		})
	})
	if (&servedKinds{}).NeedLeaderElection() {
		t.Error("an operator that waits to lead would work with an old answer when it leads")
	}
}

func TestServedKinds_MissingKindsRereadAtStart(t *testing.T) {
	type answer = sets.Set[schema.GroupVersionKind]
	all := sets.New(machineKind, proxyKind)
	for name, c := range map[string]struct {
		answers []answer
		want    answer
		after   time.Duration
	}{
		"all are served":               {[]answer{all}, all, 0},
		"one is missing for a moment":  {[]answer{{}, sets.New(proxyKind), all}, all, 2 * startRetryDelay},
		"one is not served":            {[]answer{sets.New(proxyKind), sets.New(proxyKind)}, sets.New(proxyKind), startRetryDelay},
		"none is served after a while": {[]answer{sets.New(proxyKind), {}, {}}, answer{}, 2 * startRetryDelay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, requests := time.Now(), 0
				s := &servedKinds{all: len(all), clock: clock.RealClock{}, read: func(context.Context) (answer, error) {
					requests++
					return c.answers[requests-1], nil
				}}
				got, err := s.readTwice(t.Context())
				if err != nil || !got.Equal(c.want) || time.Since(begin) != c.after || requests != len(c.answers) {
					t.Errorf("served are %v after %s and %d reads, error %v", got, time.Since(begin), requests, err)
				}
			})
		})
	}
}

func TestServedKinds_ReadFromAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		machines, config string // bodies; empty for 404
		status           int    // of config; 200 if zero
		want             []schema.GroupVersionKind
		fails            bool
	}{
		"all":                   {machines: `{"name":"machines","kind":"Machine"}`, config: `{"name":"proxies","kind":"Proxy"},{"name":"images","kind":"Image"}`, want: []schema.GroupVersionKind{machineKind, proxyKind, imageKind}},
		"a group lacks a kind":  {machines: `{"name":"machinesets","kind":"MachineSet"}`, config: `{"name":"proxies","kind":"Proxy"},{"name":"builds","kind":"Build"}`, want: []schema.GroupVersionKind{proxyKind}},
		"a group is not served": {config: `{"name":"images","kind":"Image"}`, want: []schema.GroupVersionKind{imageKind}},
		"nothing is served":     {},
		"a server that cannot answer, which means nothing":       {machines: `{}`, config: `broken`, status: 500, fails: true},
		"a server that refuses the request, which means nothing": {machines: `{}`, config: `{}`, status: 403, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := map[string]string{"/apis/machine.openshift.io/v1beta1": test.machines, "/apis/config.openshift.io/v1": test.config}[r.URL.Path]
				w.Header().Set("Content-Type", "application/json")
				switch {
				case body == "":
					w.WriteHeader(http.StatusNotFound)
				case test.status != 0:
					w.WriteHeader(test.status)
				}
				_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","resources":[` + body + `]}`))
			}))
			t.Cleanup(server.Close)
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got, err := readKinds(t.Context(), client.RESTClient(), []schema.GroupVersionKind{machineKind, proxyKind, imageKind})
			if (err != nil) != test.fails || !test.fails && !got.Equal(sets.New(test.want...)) {
				t.Errorf("served: %v, error %v", got, err)
			}
		})
	}
}

// A mapper remembers kinds that are no longer served, and a 404 for them is ambiguous. R-052
func TestMachineReader_MissingMachineAPIIsNoMatch(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{}
	node.Name = "linux-1"
	s := &servedKinds{suspected: make(chan struct{}, 1)}
	var failure error
	r := s.newMachineReader(interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(node).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return errors.Join(failure, c.List(ctx, list, options...))
		},
	}))
	lists := []client.ObjectList{&machinev1beta1.MachineList{}, &machinev1beta1.MachineSetList{}}
	for _, list := range lists {
		if err := r.List(t.Context(), list); !meta.IsNoMatchError(err) {
			t.Errorf("%T: %v", list, err)
		}
	}
	for _, object := range []client.Object{&machinev1beta1.Machine{}, &machinev1beta1.MachineSet{}} {
		if err := r.Get(t.Context(), client.ObjectKey{Name: "a"}, object); !meta.IsNoMatchError(err) {
			t.Errorf("%T: %v", object, err)
		}
	}
	if err := errors.Join(r.Get(t.Context(), client.ObjectKeyFromObject(node), node), r.List(t.Context(), &corev1.NodeList{})); err != nil {
		t.Error(err)
	}
	s.atStart = sets.New(machineKind, machineSetKind)
	for _, list := range lists {
		if err := r.List(t.Context(), list); err != nil || len(s.suspected) > 0 {
			t.Errorf("%T: %v; suspected %d", list, err, len(s.suspected))
		}
	}
	failure = apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}, "", "", 0, true)
	for range 2 {
		if err := r.List(t.Context(), lists[0]); !errors.Is(err, failure) || len(s.suspected) != 1 {
			t.Errorf("after a 404: %v; suspected %d", err, len(s.suspected))
		}
	}
}
