package prometheus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// state is a state that requires an administrator's action.
type state struct {
	name string
	// alertNames lists the alerts that the state triggers.
	alertNames []string
	// begin causes the state.
	begin func(l lab) (restore func())
	// sign is a query that shows the state in Prometheus.
	sign string
	// quiet is the time without alerts, and lasts is the time until the alerts fire; zero if they fire at once.
	quiet, lasts time.Duration
	// alerts returns the expected content of each alert.
	alerts func(l lab) []expectedAlert
	// window is the time for which an alert outlasts the state.
	window time.Duration
}

// expectedAlert contains the expected labels and description of an alert.
type expectedAlert struct {
	about       map[string]string
	description string
}

// checkAlerts causes and ends the state, and checks that exactly the alerts of the state fire and end.
func (s state) checkAlerts(l lab) {
	l.Helper()
	l.waitUntil("no alert", l.hasOnlyAlerts(nil, nil))
	restore := s.begin(l)
	l.waitUntil(s.sign, func(ctx context.Context) (bool, error) {
		found, err := l.runQuery(ctx, s.sign)
		return len(found) > 0, err
	})
	if s.lasts > 0 {
		s.advanceUntilFiring(l)
	}
	expected := s.alerts(l)
	l.waitUntil(fmt.Sprint(s.alertNames, expected), l.hasOnlyAlerts(s.alertNames, expected))
	restore()
	if s.window > 0 {
		l.advanceClock(s.window)
	}
	l.waitUntil("no alert any more", l.hasOnlyAlerts(nil, nil))
}

// advanceUntilFiring advances the clock by the time that the state must last. On a busy machine, a slow last scrape
// may have marked the target as down. In this case, the clock is advanced again.
func (s state) advanceUntilFiring(l lab) {
	l.Helper()
	l.advanceClock(s.quiet)
	if early, err := l.firingAlerts(l.Context()); err != nil || len(early) > 0 {
		l.Errorf("after %s fire %v (error %v)", s.quiet, early, err)
	}
	next := s.lasts - s.quiet
	for range 3 {
		l.advanceClock(next)
		firing, err := l.firingAlerts(l.Context())
		l.requireNoError(err)
		if len(firing) > 0 {
			return
		}
		next = s.lasts
	}
	l.Fatalf("no alert fires, three times after %s", s.lasts)
}

// hasOnlyAlerts returns a function that reports whether exactly the named alerts fire, with the expected content.
func (l lab) hasOnlyAlerts(names []string, about []expectedAlert) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		firing, err := l.firingAlerts(ctx)
		if err != nil || len(firing) != len(names) || len(about) != len(names) {
			return false, err
		}
		for i, name := range names {
			if !slices.ContainsFunc(firing, func(a alert) bool {
				return a.isExpected(name) && a.Labels["namespace"] == l.Namespace() && about[i].isMetBy(a)
			}) {
				return false, nil
			}
		}
		return true, nil
	}
}

// isExpected reports whether the alert has the name and the properties common to all alerts.
func (a alert) isExpected(name string) bool {
	return a.Labels["alertname"] == name && a.Labels["severity"] == "warning" && a.Annotations["summary"] != "" &&
		strings.HasSuffix(a.Annotations["runbook_url"], "#"+strings.ToLower(name))
}

func (w expectedAlert) isMetBy(a alert) bool {
	for label, value := range w.about {
		if a.Labels[label] != value {
			return false
		}
	}
	return strings.Contains(a.Annotations["description"], w.description)
}

// singleAlert returns the expected content of a state's only alert.
func singleAlert(description string, about map[string]string) func(lab) []expectedAlert {
	return func(lab) []expectedAlert { return []expectedAlert{{about: about, description: description}} }
}

const minute = time.Minute

// The first state must stay first, because the lab starts with such certificates.
var statesOfHosts = []state{
	{
		name:       "certificates that the cluster's signer does not renew set off an alert each, which end once it does",
		alertNames: []string{"WindowsServiceCertificateExpiring", "WindowsKubeletCertificateExpiring"},
		begin:      func(l lab) func() { return l.resumeRenewals },
		sign:       `kubelet_certificate_manager_client_ttl_seconds{node="instance-1"} < 7200`,
		quiet:      13 * minute, lasts: 16 * minute,
		alerts: func(l lab) []expectedAlert {
			name := l.instanceName("instance-1")
			return []expectedAlert{
				{map[string]string{"name": name, "certificate": "cloud-node-manager"}, name},
				{map[string]string{"node": "instance-1"}, "Node instance-1 expires in"},
			}
		},
	}, {
		name:       "a host that shows another key sets off one alert, which ends once the key is accepted",
		alertNames: []string{"WindowsHostKeyChanged"},
		begin: func(l lab) func() {
			l.Host("instance-1").Inject(winhost.ChangedHostKey, winhost.Parameters{})
			// This makes the operator connect.
			l.setAnnotation(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "instance-1"}}, v1alpha1.AnnotationRebootRequired, "patches")
			return func() {
				key, err := l.Host("instance-1").HostKey()
				l.requireNoError(err)
				l.setAnnotation(l.getInstance("instance-1"), v1alpha1.AnnotationAcceptHostKey, ssh.FingerprintSHA256(key))
			}
		},
		sign: `wmco_instance_status{reason="HostKeyChanged"} == 1`,
		alerts: func(l lab) []expectedAlert {
			name := l.instanceName("instance-1")
			return []expectedAlert{{map[string]string{"name": name}, name}}
		},
	}, {
		name:       "an exporter that does not start any more sets off one alert, which ends once it runs",
		alertNames: []string{"WindowsExporterDown"},
		begin: func(l lab) func() {
			h, services := l.Host("instance-2"), l.Host("instance-2").Machine().Host().Services
			startable := h.Inject(winhost.FailServiceStart, winhost.Parameters{Service: nodespec.ServiceExporter})
			l.requireNoError(services.Stop(l.Context(), nodespec.ServiceExporter))
			return func() {
				startable()
				l.requireNoError(services.Start(l.Context(), nodespec.ServiceExporter))
			}
		},
		sign:  `up{job="windows-exporter",instance="instance-2"} == 0`,
		quiet: 13 * minute, lasts: 16 * minute,
		alerts: singleAlert("Node instance-2.", map[string]string{"instance": "instance-2"}),
	}, {
		name:       "an operator that does not run sets off one alert, which ends once it does",
		alertNames: []string{"WindowsMachineConfigOperatorDown"},
		begin: func(l lab) func() {
			l.requireNoError(l.operator.Stop())
			return func() { l.startOperator() }
		},
		sign:  `up{job="windows-machine-config-operator"} == 0`,
		quiet: 13 * minute, lasts: 16 * minute,
		alerts: singleAlert("gets no metrics from the operator", nil),
	}, {
		name:       "a host that does not become a node within an hour sets off one alert, which ends once it does",
		alertNames: []string{"WindowsInstanceNotReady"},
		begin: func(l lab) func() {
			accept := l.Host("instance-3").Inject(winhost.RejectKey, winhost.Parameters{})
			l.requireNoError(l.ListHosts(l.Context()))
			l.waitUntil("instance-3 to be listed", func(context.Context) (bool, error) { return l.getInstance("instance-3") != nil, nil })
			l.waitUntil("its metric", func(ctx context.Context) (bool, error) {
				found, err := l.runQuery(ctx, "wmco_instance_not_ready_since_timestamp_seconds")
				return found.countLabel("name", l.instanceName("instance-3")) == 1, err
			})
			l.advanceClockTo(l.getInstance("instance-3").CreationTimestamp.Add(58 * minute))
			return accept
		},
		sign:  `time() - wmco_instance_not_ready_since_timestamp_seconds < 3600`,
		quiet: 5 * minute, lasts: 9 * minute,
		alerts: func(l lab) []expectedAlert {
			name := l.instanceName("instance-3")
			return []expectedAlert{{map[string]string{"name": name}, name + " has not been Ready for 1h "}}
		},
	},
}

// getInstance returns the WindowsInstance of a host, or nil if it does not exist.
func (l lab) getInstance(name string) *v1alpha1.WindowsInstance {
	l.Helper()
	instance, err := l.Instance(l.Context(), name)
	l.requireNoError(err)
	return instance
}

// instanceName returns the name of the WindowsInstance of a host.
func (l lab) instanceName(name string) string {
	l.Helper()
	instance := l.getInstance(name)
	if instance == nil {
		l.Fatalf("%s has no instance", name)
	}
	return instance.Name
}

func (l lab) setAnnotation(object client.Object, name, value string) {
	l.Helper()
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		l.Fatalf("%T is no object", object)
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
	l.requireNoError(l.Client.Patch(l.Context(), object, client.MergeFrom(before)))
}

// setPaused sets spec.paused of the instance of a host.
func (l lab) setPaused(name string, paused bool) {
	l.Helper()
	before := l.getInstance(name)
	after := before.DeepCopy()
	after.Spec.Paused = paused
	l.requireNoError(l.Client.Patch(l.Context(), after, client.MergeFrom(before)))
}
